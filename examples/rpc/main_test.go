// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

func TestTheBankAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bank, failed := hosttest.NewBroker(), hosttest.NewBroker()
		asked := hosttest.Stream()
		asked.Address = "" // nothing can be put back to those who ask
		bank.Source("rates", asked)
		failed.Source("rates", hosttest.Stream())
		h := host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"bank": bank, "failed": failed}), hosttest.Logger(t))
		answer(h)
		s := hosttest.Start(t, h, bank, failed)
		for _, tt := range []struct {
			question Question
			want     string
			takes    time.Duration
		}{
			{Question{"EUR", "USD"}, `{"Rate":1.25}`, 0},
			{Question{"EUR", "EUR"}, `{"Error":"no such rate"}`, 0},
			{Question{"XAU", "USD"}, `{"Rate":4100}`, slow},
		} {
			desk := "desk/" + tt.question.From + tt.question.To
			began := time.Now()
			bank.Deliver("rates", hosttest.JSON(tt.question).With("reply-to", desk).With("correlation-id", "42"))
			s.Wait()
			got := bank.Published(desk)
			if len(got) != 1 || got[0].Text() != tt.want || got[0].Header("correlation-id") != "42" || time.Since(began) < tt.takes {
				t.Errorf("%v: got %v after %v, want %s", tt.question, got, time.Since(began), tt.want)
			}
		}
		if copies := failed.Published("rates"); len(copies) != 0 {
			t.Errorf("failed %v", copies)
		}
	})
}

// Whoever asks does not wait longer than it likes.
func TestTheDeskWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		b.Respond("rates", func(m hosttest.Message) hosttest.Message {
			if strings.Contains(m.Text(), "XAU") {
				time.Sleep(slow)
			}
			return hosttest.JSON(Answer{Rate: 2}).With("correlation-id", m.Header("correlation-id"))
		})
		h := host.New(b.Replace(), hosttest.Logger(t))
		desk := h.Endpoint("desk", host.Plugin{Name: "zmq"}, nil)
		hosttest.Start(t, h, b)
		for _, tt := range []struct {
			question Question
			want     string
		}{
			{Question{"EUR", "USD"}, "2"},
			{Question{"XAU", "USD"}, "no answer in time"},
			{Question{"USD", "EUR"}, "2"},
		} {
			if got := ask(t.Context(), h, desk.To("rates"), tt.question); got != tt.want {
				t.Errorf("%v: got %q, want %q", tt.question, got, tt.want)
			}
		}
	})
}
