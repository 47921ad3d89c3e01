// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"encoding/binary"
	"time"
)

// The commands. PING and PONG, and SUBSCRIBE and CANCEL in place of messages,
// are of ZMTP 3.1 (RFC 37); libzmq sends the former to peers of 3.0 as well.
const (
	commandReady     = "READY"
	commandError     = "ERROR"
	CommandPing      = "PING"
	CommandPong      = "PONG"
	CommandSubscribe = "SUBSCRIBE"
	CommandCancel    = "CANCEL"
	CommandError     = commandError
)

// Heartbeats (RFC 37): a PING carries a time to live in tenths of a second and
// a context of at most MaxContext bytes, which its PONG gives back.
const (
	MaxContext = 16
	ttlLen     = 2
	ttlUnit    = 100 * time.Millisecond
)

// AppendPing appends a PING frame. The peer may drop the connection when
// nothing else arrives for ttl, 0 = it never does; ttl is cut to tenths of a
// second, at most 6553.5 s.
func AppendPing(dst []byte, ttl time.Duration, context []byte) []byte {
	tenths := min(max(ttl/ttlUnit, 0), 1<<16-1)
	dst = appendCommandHead(dst, CommandPing, ttlLen+len(context))
	dst = binary.BigEndian.AppendUint16(dst, uint16(tenths))
	return append(dst, context...)
}

// AppendPong appends the PONG frame that answers a PING with this context.
func AppendPong(dst, context []byte) []byte {
	return append(appendCommandHead(dst, CommandPong, len(context)), context...)
}

// ParsePing reads the body of a PING. It reports false for one that has no time
// to live or a context of more than MaxContext bytes.
func ParsePing(body []byte) (ttl time.Duration, context []byte, ok bool) {
	if len(body) < ttlLen || len(body) > ttlLen+MaxContext {
		return 0, nil, false
	}
	return time.Duration(binary.BigEndian.Uint16(body)) * ttlUnit, body[ttlLen:], true
}

func appendCommandHead(dst []byte, name string, size int) []byte {
	dst = appendHead(dst, flagCommand, 1+len(name)+size)
	return append(append(dst, byte(len(name))), name...)
}

// A subscription message is a byte and a prefix (RFC 23, "The Publish-Subscribe
// Pattern").
const (
	subscribeOff = 0
	subscribeOn  = 1
)

// AppendSubscribe appends the message that subscribes to a prefix of the first
// frame, or ends that. Peers of 3.0 and 3.1 understand it.
func AppendSubscribe(dst []byte, prefix string, on bool) []byte {
	dst = AppendHead(dst, 1+len(prefix), false)
	if on {
		dst = append(dst, subscribeOn)
	} else {
		dst = append(dst, subscribeOff)
	}
	return append(dst, prefix...)
}

// Subscription reads a subscription or its end, as a message or as a command.
// It reports false for everything else. The prefix lies in the reader's memory.
func Subscription(f *Frames) (prefix []byte, on, ok bool) {
	switch f.Command {
	case CommandSubscribe:
		return f.Body, true, true
	case CommandCancel:
		return f.Body, false, true
	case "":
		if f.Count == 1 && len(f.List[0]) > 0 && f.List[0][0] <= subscribeOn {
			return f.List[0][1:], f.List[0][0] == subscribeOn, true
		}
	}
	return nil, false, false
}

// commandName returns the name of a command, without memory for known ones.
func commandName(b []byte) string {
	switch string(b) {
	case CommandPing:
		return CommandPing
	case CommandPong:
		return CommandPong
	case CommandSubscribe:
		return CommandSubscribe
	case CommandCancel:
		return CommandCancel
	case CommandError:
		return CommandError
	default:
		return string(b)
	}
}
