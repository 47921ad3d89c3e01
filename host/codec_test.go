// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// line is one line of CSV with two fields.
type line struct{ A, B string }

// lines is a codec of two content types.
type lines struct{ types []string }

func (c lines) ContentTypes() []string { return c.types }

func (c lines) Marshal(v any) ([]byte, error) {
	l, ok := v.(line)
	if !ok {
		if p, isPointer := v.(*line); isPointer {
			l, ok = *p, true
		}
	}
	if !ok {
		return nil, fmt.Errorf("%T is no line", v)
	}
	return []byte(l.A + "," + l.B), nil
}

func (c lines) Unmarshal(data []byte, v any) error {
	fields, err := csv.NewReader(bytes.NewReader(data)).Read()
	if err != nil {
		return err
	}
	if fields[0] == "panic" {
		panic("no such line")
	}
	l, ok := v.(*line)
	if !ok || len(fields) != 2 {
		return fmt.Errorf("%d fields, into a %T", len(fields), v)
	}
	*l = line{fields[0], fields[1]}
	return nil
}

var csvLines = lines{[]string{"text/csv", "Text/X-CSV"}}

// put is a message with a content type, "" = none.
func put(q *queues, name, contentType, payload string) {
	m := core.Message{Name: name, Payload: []byte(payload)}
	if contentType != "" {
		m.Headers = core.Headers{{Name: "Content-Type", Value: []byte(contentType)}}
	}
	q.take(m, nil)
}

func TestCodecs(t *testing.T) {
	in := newQueues()
	s := newService(host.WithCodec(csvLines))
	e := attach(s.Host, "in", in)
	var told tale
	host.Handle(e.Subscription("values"), func(_ context.Context, m *host.Message[line]) error {
		told.add("value %v", m.Value)
		return nil
	})
	host.Handle(e.Subscription("pointers"), func(_ context.Context, m *host.Message[*line]) error {
		told.add("pointer %v", *m.Value)
		return nil
	}, host.DefaultContentType("text/csv"))
	host.Handle(e.Subscription("raw"), func(_ context.Context, m *host.Message[[]byte]) error {
		told.add("raw %s", m.Value)
		return nil
	}, host.DefaultContentType("text/csv"))
	host.HandleReply(e.Subscription("asked"), func(_ context.Context, m *host.Message[line]) (*line, error) {
		return &line{m.Value.B, m.Value.A}, nil
	}, host.DefaultContentType("text/x-csv"), host.ReplyTo(e.To("answers")))
	to := host.To[line](s.Host, e.To("out"))
	s.serve(t)
	put(in, "values", "TEXT/CSV; header=absent", "1,2")
	put(in, "values", "text/x-csv", "3,4")
	put(in, "values", "", `{"A":"5","B":"6"}`)
	put(in, "values", "text/csv", "7")     // wrong
	put(in, "values", "text/other", "8,9") // no codec
	put(in, "pointers", "", "1,2")         // assumed
	put(in, "pointers", "application/json", `{"A":"3"}`)
	put(in, "raw", "", "1,2")
	put(in, "asked", "", "1,2")
	if _, err := to.Publish(t.Context(), line{"7", "8"}, host.WithContentType("text/csv")); err != nil {
		t.Error(err)
	}
	want := []string{"pointer {1 2}", "pointer {3 }", "raw 1,2", "value {1 2}", "value {3 4}", "value {5 6}"}
	eventually(t, "all are handled", func() bool { return len(told.all()) == len(want) && len(in.took("answers")) == 1 })
	if diff := cmp.Diff(want, told.all()); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
	header := func(v string) core.Headers { return core.Headers{{Name: "content-type", Value: []byte(v)}} }
	if diff := cmp.Diff([]core.Message{{Name: "answers", Payload: []byte("2,1"), Headers: header("text/x-csv")}}, in.took("answers")); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]core.Message{{Name: "out", Payload: []byte("7,8"), Headers: header("text/csv")}}, in.took("out")); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	eventually(t, "the undecodable are told", func() bool { return len(s.log.lines("code=L-DEC")) == 2 })
}

// A codec takes the place of a built-in one, of protobuf messages as well.
func TestCodecsInPlaceOfBuiltInOnes(t *testing.T) {
	var seen []string
	s := newService(host.WithCodec(spy{"application/json", &seen}), host.WithCodec(spy{"application/protobuf", &seen}))
	in := newQueues()
	e := attach(s.Host, "in", in)
	host.Handle(e.Subscription("structs"), func(context.Context, *host.Message[line]) error { return nil })
	host.Handle(e.Subscription("protos"), func(context.Context, *host.Message[*wrapperspb.StringValue]) error { return nil })
	s.serve(t)
	put(in, "structs", "application/json", "x")
	eventually(t, "the first is read", func() bool { return len(in.verdicts("structs")) == 1 })
	put(in, "protos", "application/protobuf", "x")
	eventually(t, "the second is read", func() bool { return len(in.verdicts("protos")) == 1 })
	if diff := cmp.Diff([]string{"*host_test.line", "*wrapperspb.StringValue"}, seen); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

// spy is a codec that notes what it is given.
type spy struct {
	contentType string
	seen        *[]string
}

func (c spy) ContentTypes() []string      { return []string{c.contentType} }
func (c spy) Marshal(any) ([]byte, error) { return nil, errors.New("no") }
func (c spy) Unmarshal(_ []byte, v any) error {
	*c.seen = append(*c.seen, reflect.TypeOf(v).String())
	return nil
}

// A codec that panics is a handler that does.
func TestCodecsThatPanic(t *testing.T) {
	in := newQueues()
	s := newService(host.WithCodec(csvLines))
	host.Handle(attach(s.Host, "in", in).Subscription("values"),
		func(context.Context, *host.Message[line]) error { return nil }, host.OnPanic(host.AsAck))
	s.serve(t)
	put(in, "values", "text/csv", "panic,1")
	eventually(t, "it is acked", func() bool { return len(in.verdicts("values")) == 1 })
	if got := in.verdicts("values"); got[0] != "ack panic,1" {
		t.Errorf("got %v, want what OnPanic says", got)
	}
	if len(s.log.lines("code=L-PAN", "no such line")) != 1 {
		t.Error("the panic is not logged")
	}
}

func TestCodecsThatAreRefused(t *testing.T) {
	s := newService(host.WithCodec(nil), host.WithCodec(lines{}), host.WithCodec(lines{[]string{"text/csv; x=y"}}),
		host.WithCodec(lines{[]string{" "}}), host.WithCodec(lines{[]string{"text/csv"}}), host.WithCodec(lines{[]string{"text/plain", "TEXT/CSV"}}))
	e := attach(s.Host, "in", newQueues())
	host.Handle(e.Subscription("a"), func(context.Context, *host.Message[line]) error { return nil }, host.DefaultContentType("text/none"))
	host.Handle(e.Subscription("b"), func(context.Context, *host.Message[line]) error { return nil }, host.DefaultContentType("application/protobuf"))
	host.Handle(e.Subscription("c"), func(context.Context, *host.Message[line]) error { return nil }, host.DefaultContentType(" "))
	host.HandleReply(e.Subscription("d"), func(context.Context, *host.Message[*wrapperspb.StringValue]) (line, error) { return line{}, nil },
		host.DefaultContentType("application/protobuf"))
	host.Handle(e.Subscription("fine"), func(context.Context, *host.Message[*wrapperspb.StringValue]) error { return nil },
		host.DefaultContentType("application/protobuf"))
	se := startError(t, s)
	want := []string{
		": WithCodec", ": WithCodec", ": WithCodec", ": WithCodec", ": WithCodec",
		"a: DefaultContentType", "b: DefaultContentType", "c: DefaultContentType", "d: DefaultContentType",
	}
	if diff := cmp.Diff(want, options(se)); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%v", diff, se)
	}
	for _, f := range se.Findings {
		if strings.Contains(f.Message, "two codecs") && len(f.Places) != 2 {
			t.Errorf("%v names %v, want both places", f, f.Places)
		}
	}
}
