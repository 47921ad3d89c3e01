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

func TestTheOfficeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		b.Source(berths, hosttest.Session())
		h := host.New(b.Replace(), hosttest.Logger(t))
		answer(h, "mqtt://127.0.0.1")
		s := hosttest.Start(t, h)
		for _, tt := range []struct {
			question Question
			want     string
			takes    time.Duration
		}{
			{Question{"Thalia", 90}, `{"Berth":"pier 4"}`, 0},
			{Question{"Emma", 397}, `{"Error":"too long for this harbour"}`, 0},
			{Question{"Ghost", 40}, `{"Error":"no such ship"}`, slow},
		} {
			to := "ships/" + tt.question.Ship
			began := time.Now()
			b.Deliver(berths, hosttest.JSON(tt.question).With("reply-to", to).With("correlation-id", "42"))
			s.Wait()
			got := b.Published(to)
			if len(got) != 1 || got[0].Text() != tt.want || got[0].Header("correlation-id") != "42" || time.Since(began) < tt.takes {
				t.Errorf("%v: got %v after %v, want %s", tt.question, got, time.Since(began), tt.want)
			}
		}
	})
}

// A ship does not wait longer than it likes.
func TestShipsWaitNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		b.Respond(berths, func(m hosttest.Message) hosttest.Message {
			if strings.Contains(m.Text(), "Ghost") {
				time.Sleep(slow)
			}
			return hosttest.JSON(Answer{Berth: "the basin"}).With("correlation-id", m.Header("correlation-id"))
		})
		h := host.New(b.Replace(), hosttest.Logger(t))
		ships := h.Endpoint("ships", host.Plugin{Name: "mqtt"}, nil)
		hosttest.Start(t, h)
		for _, tt := range []struct {
			question Question
			want     string
		}{
			{Question{"Dora", 21}, "the basin"},
			{Question{"Ghost", 40}, "no answer in time"},
			{Question{"Dora", 21}, "the basin"},
		} {
			if got := ask(t.Context(), h, ships.To(berths), tt.question); got != tt.want {
				t.Errorf("%v: got %q, want %q", tt.question, got, tt.want)
			}
		}
	})
}
