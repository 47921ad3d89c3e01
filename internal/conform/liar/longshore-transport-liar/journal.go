// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// The records of a queue's journal.
const (
	opQueue = 'q' // the first: tag and name
	opPut   = 'p' // a message: seq, time, due, then the Outgoing
	opTake  = 't' // delivered: seq
	opBack  = 'b' // handed back: seq, due
	opDone  = 'd' // gone: seq
)

// recordLimit is beyond what any message makes; a longer one is a broken file.
const recordLimit = wireLimit

// journal is the file of one queue: each record has its length and checksum. A
// record is written with one call, so that a killed process leaves at most one
// that is cut short. The machine's own end is not provided for.
type journal struct {
	f    *os.File
	size int64 // of what is whole
}

// openJournal opens or makes a file and shows its records to visit. What is cut
// short at the end is cut off.
func openJournal(path string, visit func(op byte, body []byte) error) (j *journal, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	j = &journal{f: f}
	r := bufio.NewReaderSize(f, 1<<16)
	for {
		record, err := readRecord(r)
		if err != nil {
			break
		}
		if err := visit(record[0], record[1:]); err != nil {
			return nil, fmt.Errorf("%s at byte %d: %w", path, j.size, err)
		}
		j.size += int64(8 + len(record))
	}
	return j, f.Truncate(j.size)
}

func readRecord(r io.Reader) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:4])
	if n == 0 || n > recordLimit {
		return nil, errors.New("a record without a length")
	}
	record := make([]byte, n)
	if _, err := io.ReadFull(r, record); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(record) != binary.BigEndian.Uint32(head[4:]) {
		return nil, errors.New("a record with a wrong checksum")
	}
	return record, nil
}

// record appends one record to what is to be written.
func record(to []byte, op byte, numbers []uint64, rest []byte) []byte {
	at := len(to)
	to = append(to, 0, 0, 0, 0, 0, 0, 0, 0, op)
	for _, n := range numbers {
		to = binary.BigEndian.AppendUint64(to, n)
	}
	to = append(to, rest...)
	body := to[at+8:]
	binary.BigEndian.PutUint32(to[at:], uint32(len(body)))
	binary.BigEndian.PutUint32(to[at+4:], crc32.ChecksumIEEE(body))
	return to
}

// write appends records. After an error the file is as before.
func (j *journal) write(records []byte) error {
	if _, err := j.f.WriteAt(records, j.size); err != nil {
		return errors.Join(err, j.f.Truncate(j.size))
	}
	j.size += int64(len(records))
	return nil
}
