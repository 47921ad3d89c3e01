// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// errControl is why a peer must go that lets what it asks for pile up.
var errControl = errors.New("it does not read what is sent to it")

// Left is what came in and is lost, because it was not delivered before Stop.
type Left struct {
	Messages int   // of peers
	Bytes    int64 // theirs, and of parts of messages
	Own      int   // of the own queue
	Cut      int   // peers that had not ended when they were closed, so that more may have been under way
}

// Left returns what was there at Stop and what has come in since. It is complete
// once Serve has returned for all peers.
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

// Stop ends reading: Receive returns io.EOF, and Serve delivers nothing more.
// Peers are told so by the end of what we send, which is all that ZMTP has for
// it; with ReplyTo they are not, since replies are still to come. What they send
// until they end too is counted. It waits for nothing; further calls do nothing.
func (in *Intake) Stop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return
	}
	in.stopped = true
	close(in.stopping)
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

// leave forgets a peer.
func (in *Intake) leave(f *feed) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.feeds, f)
	in.peers.Add(-1)
}

// drain reads on after Stop and counts what comes, until the peer ends or is
// closed. A sender that sees our end stops writing and closes the connection, and
// its system still sends what it has taken. Were the connection closed at once,
// that would be lost and nobody knew how much.
func (f *feed) drain() error {
	if !f.in.o.Source.ReplyTo {
		f.peer.Out.End()
	}
	f.share(nil)
	if err := f.undisturbed(); err != nil {
		return f.parted(err)
	}
	for {
		n, bytes, err := f.count()
		f.in.addLeft(n, bytes)
		if err != nil {
			return err
		}
		if err := f.fill(); err != nil {
			f.in.addLeft(0, int64(f.reader.Buffered())) // part of a message
			return f.parted(err)
		}
	}
}

// undisturbed takes back the deadline that Stop has set, which it does under the
// same lock.
func (f *feed) undisturbed() error {
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
	return f.peer.Conn.NetConn().SetReadDeadline(time.Time{})
}

// parted is what Serve returns for a peer that has ended after Stop.
func (f *feed) parted(err error) error {
	if errors.Is(f.peer.Cause(), peering.ErrClosed) {
		f.in.mu.Lock()
		f.in.left.Cut++
		f.in.mu.Unlock()
	}
	if f.in.o.Source.ReplyTo {
		return err
	}
	return nil // it ended because we did
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
