// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

func faulted(err error) *core.Fault {
	f, _ := errors.AsType[*core.Fault](err)
	return f
}

func TestPublishRefuses(t *testing.T) {
	path := newPath(t)
	b := open(t, settings.Settings{Path: path}, writes("k"))
	late := servicetest.Message("k", "x")
	late.DeliverAfter = time.Second
	many := servicetest.Message("k", "x")
	many.Message.Headers = make(core.Headers, file.MaxPublishHeaders+1)
	for _, tt := range []struct {
		name string
		m    pluginapi.Outgoing
		want core.FaultCode
	}{
		{"a bad key", servicetest.Message("a b", "x"), core.FaultInvalid},
		{"no key", servicetest.Message("", "x"), core.FaultInvalid},
		{"the key of end marks", servicetest.Message("SEA_STREAMER_INTERNAL", "EOS"), core.FaultInvalid},
		{"the key of the first record", servicetest.Message("ruststream-internal", "1"), core.FaultInvalid},
		{"later", late, core.FaultUnsupported},
		{"too many headers", many, core.FaultTooLarge},
		{"too large", servicetest.Message("k", strings.Repeat("x", file.MaxPublish+1)), core.FaultTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rs := b.publish(servicetest.Message("k", "before"), tt.m, servicetest.Message("k", "behind"))
			for i, want := range []pluginapi.ReceiptStatus{pluginapi.ReceiptConfirmed, pluginapi.ReceiptRefused, pluginapi.ReceiptConfirmed} {
				if rs[i].Status != want {
					t.Errorf("receipt %d: %v, %v", i, rs[i].Status, rs[i].Fault)
				}
			}
			if f := rs[1].Fault; f == nil || f.Code != tt.want || f.Transient {
				t.Errorf("fault %+v", f)
			}
		})
	}
	b.end()
	for _, r := range contents(t, path) {
		if r != "k before" && r != "k behind" {
			t.Errorf("the file holds %.100s", r)
		}
	}
}

// A receipt says where its record stands, in words that a start and a seek
// understand.
func TestReceiptsHavePositions(t *testing.T) {
	for _, fsync := range []string{settings.FsyncNone, settings.FsyncInterval, settings.FsyncEach} {
		b := open(t, settings.Settings{Path: newPath(t), Fsync: fsync}, writes("k"))
		rs := b.publish(servicetest.Message("k", "a"), servicetest.Message("a b", ""), servicetest.Message("other", "b"), servicetest.Message("k", "c"))
		var got []string
		for _, r := range rs {
			got = append(got, string(r.Position))
		}
		servicetest.Expect(t, fsync, got, "sequence 1", "", "sequence 1", "sequence 2")
		b.end()
	}
}

// What an application publishes leaves behind the number of the delivery that it
// stems from; copies, dead letters and replies keep it.
func TestSequenceHeaderOfPublishes(t *testing.T) {
	path := newPath(t)
	b := open(t, settings.Settings{Path: path}, writes("k"))
	for _, p := range []pluginapi.Purpose{pluginapi.PurposeApplication, pluginapi.PurposeRetry, pluginapi.PurposeDeadLetter} {
		m := servicetest.Message("k", p.String(), "Stream-Sequence", "7", "a", "b")
		m.Purpose = p
		b.publish(m, servicetest.Message("k", "plain", "stream-sequence", "7"))
	}
	b.end()
	want := []string{}
	for _, p := range []pluginapi.Purpose{pluginapi.PurposeApplication, pluginapi.PurposeRetry, pluginapi.PurposeDeadLetter} {
		kept := " Stream-Sequence=7"
		if p == pluginapi.PurposeApplication {
			kept = ""
		}
		want = append(want, "k "+p.String()+kept+" a=b", "k plain")
	}
	servicetest.Expect(t, "file", contents(t, path), want...)
}

// F-08, and headers of any bytes: what is written is read again byte for byte.
func TestF08RoundTrip(t *testing.T) {
	random := make([]byte, 2<<20)
	r := rand.NewChaCha8([32]byte{8})
	_, _ = r.Read(random)
	path := newPath(t)
	b := open(t, settings.Settings{Path: path, BeaconInterval: 1024}, pluginapi.Usage{})
	s := b.subscribe("k", settings.Subscription{})
	defer closeSub(t, s)
	msgs := []pluginapi.Outgoing{
		servicetest.Message("k", "rs1:"), servicetest.Message("k", "rs1:AAAA"), servicetest.Message("k", "rs1:cnViYmlzaA=="), servicetest.Message("k", "rs2:AAAAAHg="),
		servicetest.Message("k", ""), servicetest.Message("k", "\xff"), servicetest.Message("k", string(random)), servicetest.Message("k", "EOS"),
		servicetest.Message("k", "x", "a", "1", "a", "2", "A", ""), servicetest.Message("k", "", "x-bin", "\x00\xff"), servicetest.Message("k", "x", " blank ", " v\r\n"),
	}
	for _, m := range msgs {
		if rs := b.publish(m); rs[0].Status != pluginapi.ReceiptConfirmed {
			t.Fatalf("refused with %v", rs[0].Fault)
		}
	}
	ds, reports := b.take(s, len(msgs))
	if len(reports) > 0 {
		t.Errorf("reports %v", reports)
	}
	for i, d := range ds {
		m := d.Message
		if !bytes.Equal(m.Payload, msgs[i].Message.Payload) || d.Undecodable != nil {
			t.Errorf("payload %d: %.100q, %v", i, m.Payload, d.Undecodable)
		}
		n := len(m.Headers) - 1
		if n < 0 || m.Headers[n].Name != "stream-sequence" {
			t.Fatalf("headers %d: %v", i, m.Headers)
		}
		if diff := cmp.Diff([]core.Header(msgs[i].Message.Headers), []core.Header(m.Headers[:n:n])); diff != "" && n+len(msgs[i].Message.Headers) > 0 {
			t.Errorf("headers %d: %s", i, diff)
		}
	}
}

// The largest message is published and read; a record that is larger, of
// somebody else, is delivered as one that cannot be read.
func TestLargestMessage(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, pluginapi.Usage{})
	s := b.subscribe("k", settings.Subscription{})
	defer closeSub(t, s)
	payload := strings.Repeat("x", file.MaxPublish-2)
	b.put("k", strings.Repeat("y", file.MaxPublish))
	if rs := b.publish(servicetest.Message("k", payload, "a", "b")); rs[0].Status != pluginapi.ReceiptConfirmed {
		t.Fatal(rs[0].Fault)
	}
	ds, _ := b.take(s, 2)
	if got := ds[1].Message; string(got.Payload) != payload || len(got.Headers) != 2 {
		t.Errorf("got %d bytes, %v", len(got.Payload), got.Headers)
	}
}

// An endpoint that is closed publishes nothing more.
func TestPublishAfterClose(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("k"))
	b.end()
	if rs := b.publish(servicetest.Message("k", "x")); rs[0].Status != pluginapi.ReceiptRefused || rs[0].Fault.Code != core.FaultClosed {
		t.Errorf("got %v", rs[0])
	}
	if _, err := b.conn.Subscribe(b.ctx, pluginapi.Registration{Name: "k"}); faulted(err) == nil || faulted(err).Code != core.FaultClosed {
		t.Errorf("subscribed with %v", err)
	}
}

// tooManyHeaders is an envelope with one header more than a message may have.
func tooManyHeaders() string {
	block := strings.Repeat("a:\n", file.MaxHeaders+1)
	plain := binary.BigEndian.AppendUint32(nil, uint32(len(block)))
	return "rs1:" + base64.StdEncoding.EncodeToString(append(plain, block...))
}
