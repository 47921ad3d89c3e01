// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes the part of Pulsar's binary protocol that consumers
// and producers need. It does no more than that: no connection, no goroutine, no time.
//
// A frame is its size, the size of the command, the command (a BaseCommand of
// PulsarApi.proto), and in SEND and MESSAGE an entry. The Append functions append
// whole frames. A [Reader] returns frames; [Frame.Parse], [Frame.Receipt] and
// [Frame.Delivery] read their commands, and pass over fields that are not needed.
//
// An entry is one message or a batch: [AppendSend] and [Batch.AppendSend] write it,
// [Delivery.Messages] reads it, with checksums and in all compressions. Encryption and
// messages in several entries (chunks) are not read; an [EntryError] says so.
//
// Nothing is allocated for a message that is sent, nor for a SEND_RECEIPT. A message
// that is received lies in the memory of its frame, and its properties in memory for
// some more: whoever holds a message holds these, 64 KiB and 6 KiB at most beyond what
// is its own.
//
// # Caveats
//
// What a peer announces costs little until it comes, and what it sends is bounded: a
// frame by [MaxFrame] or [Reader.Allow], what is decompressed by 64 MiB an entry, the
// messages and properties of an entry by 262,144. How many entries are held is for the
// caller to bound.
package wire
