// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// errControl is why a peer must go that lets what it asks for pile up.
var errControl = errors.New("it does not read what is sent to it")

// Left is what was there at the stop and is lost.
type Left struct {
	Messages int   // of peers, read and not delivered
	Bytes    int64 // theirs, and those that wait in the operating system
	Own      int   // of the own queue
}

// Left returns what Stop has left, and what came in from peers that stay
// connected since.
func (in *Intake) Left() Left {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.left
}

func (in *Intake) addLeft(messages int, bytes int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.left.Messages += messages
	in.left.Bytes += bytes
}

// Stop ends reading: Receive returns io.EOF, Serve returns or, with ReplyTo,
// goes on without delivering anything. It waits until what is left is counted,
// which no peer can delay. Further calls do nothing.
func (in *Intake) Stop() {
	if in.stop() {
		in.counting.Wait()
	}
}

func (in *Intake) stop() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return false
	}
	in.stopped = true
	close(in.stopping)
	in.counting.Add(len(in.feeds))
	for f := range in.feeds {
		_ = f.peer.Conn.NetConn().SetReadDeadline(time.Unix(1, 0)) // fails where it is closed, which is as good
	}
	for f := in.ready.pop(); f != nil; f = in.ready.pop() {
		if !f.own {
			f.turn <- struct{}{}
		}
	}
	in.left.Own = in.own.copies.len() + in.own.published.len()
	in.own.copies, in.own.published = fifo{}, fifo{}
	return true
}

// isStopping reports whether Stop was called.
func (in *Intake) isStopping() bool {
	select {
	case <-in.stopping:
		return true
	default:
		return false
	}
}

// leave forgets a peer, and after Stop counts what it leaves. It reports
// whether Stop was called.
func (in *Intake) leave(f *feed) bool {
	in.mu.Lock()
	delete(in.feeds, f)
	in.peers.Add(-1)
	stopped := in.stopped
	in.mu.Unlock()
	if !stopped {
		return false
	}
	defer in.counting.Done()
	n, bytes, err := f.count()
	if err == nil {
		bytes += int64(f.reader.Buffered()) // part of a message
	}
	in.addLeft(n, bytes+unread(f.peer.Conn.NetConn()))
	return true
}

// count takes what was read and tells how much it is.
func (f *feed) count() (messages int, bytes int64, err error) {
	var frames zmtp.Frames
	defer f.reader.Spent()
	for {
		ok, err := f.reader.Next(&frames)
		switch {
		case err != nil || !ok:
			return messages, bytes, err
		case frames.Command != "":
			if err := f.command(&frames); err != nil {
				return messages, bytes, err
			}
		case f.in.wants(f.named(&frames)[0]):
			messages++
			bytes += int64(frames.Bytes)
		}
	}
}
