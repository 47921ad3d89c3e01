// SPDX-License-Identifier: Apache-2.0

package liar

import (
	"math"
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

func deliveryLies() []Lie {
	return []Lie{
		{Name: "ignores-credit", Wrong: "sends everything at the first credit", Cases: []string{"credit/messages"},
			tell: func(c *Conduct) {
				c.Window = func(*pb.Credit) *pb.Credit { return &pb.Credit{Messages: math.MaxInt64, Bytes: math.MaxInt64} }
			}},
		{Name: "ignores-byte-credit", Wrong: "counts messages alone", Cases: []string{"credit/bytes"},
			tell: func(c *Conduct) {
				c.Window = func(w *pb.Credit) *pb.Credit { return &pb.Credit{Messages: w.GetMessages(), Bytes: math.MaxInt64} }
			}},
		{Name: "ignores-shrink", Wrong: "keeps the largest window that it ever had", Cases: []string{"credit/shrink"},
			tell: func(c *Conduct) {
				most := &pb.Credit{}
				c.Window = func(w *pb.Credit) *pb.Credit {
					most = &pb.Credit{Messages: max(most.GetMessages(), w.GetMessages()), Bytes: max(most.GetBytes(), w.GetBytes())}
					return most
				}
			}},
		{Name: "starves", Wrong: "sends nothing that is larger than what is left of the window's bytes", Cases: []string{"credit/bytes"},
			tell: func(c *Conduct) { c.Strict = true }},
		{Name: "one-at-a-time", Wrong: "delivers nothing before the last delivery is settled", Cases: []string{"settle/parallel"},
			tell: func(c *Conduct) {
				c.Window = func(w *pb.Credit) *pb.Credit {
					return &pb.Credit{Messages: min(w.GetMessages(), 1), Bytes: w.GetBytes()}
				}
			}},
		{Name: "stops-all", Wrong: "ends every subscription's intake where one is stopped", Cases: []string{"settle/beside"},
			tell: func(c *Conduct) { c.StopsAll = true }},
		{Name: "caught-up-early", Wrong: "says that it has caught up behind each frame", Cases: []string{"settle/caught-up"},
			tell: func(c *Conduct) { c.CaughtUp = true }},
		{Name: "doubles-cancelled", Wrong: "delivers twice what was unsettled on a cancelled stream", Cases: []string{"unsettled/after-cancel"},
			tell: func(c *Conduct) { c.DoublesCut = true }},
		{Name: "ignores-pause", Wrong: "goes on where the window is set to 0", Cases: []string{"credit/pause"},
			tell: func(c *Conduct) {
				c.Window = func(w *pb.Credit) *pb.Credit {
					return &pb.Credit{Messages: max(w.GetMessages(), 1), Bytes: max(w.GetBytes(), 1)}
				}
			}},
		{Name: "sends-before-credit", Wrong: "sends a delivery before there is a window", Cases: []string{"credit/none-before"},
			tell: func(c *Conduct) { c.BeforeCredit = true }},
		{Name: "sends-after-stop", Wrong: "sends deliveries behind Ended", Cases: []string{"stop/under-load"},
			tell: func(c *Conduct) { c.AfterStop = true }},
		{Name: "ended-fault", Wrong: "says that a stop is a fault", Cases: []string{"stop/idle"},
			tell: func(c *Conduct) { c.EndedFault = true }},
		{Name: "opens-once", Wrong: "opens a registration once", Cases: []string{"stop/reopen"},
			tell: func(c *Conduct) { c.OpensOnce = true }},
		{Name: "spends-cancelled", Wrong: "does not open a registration again whose stream was cancelled", Cases: []string{"stop/during-subscribe"},
			tell: func(c *Conduct) { c.SpendsCut = true }},
		{Name: "seconds", Wrong: "says in seconds when a message was published", Cases: []string{"settle/published-at"},
			tell: func(c *Conduct) { c.Deliver = func(d *pb.Delivery) { d.PublishedAt /= int64(time.Second) } }},
		{Name: "ended-missing", Wrong: "does not say that intake has ended", Cases: []string{"stop/under-load"},
			tell: func(c *Conduct) { c.NoEnded = true }},
		{Name: "reuses-ids", Wrong: "uses ids of settled deliveries again", Cases: []string{"settle/ack"},
			tell: func(c *Conduct) {
				c.ID = func(next uint64, unsettled int) uint64 {
					if unsettled == 0 {
						return 1
					}
					return next
				}
			}},
		{Name: "skips-ids", Wrong: "leaves every other id out", Cases: []string{"settle/ack"},
			tell: func(c *Conduct) { c.ID = func(next uint64, _ int) uint64 { return next + next%2 } }},
		{Name: "big-frames", Wrong: "sends more than 256 messages a frame", Cases: []string{"publish/receipts", "settle/order"},
			tell: func(c *Conduct) { c.FrameSize = 1 << 10 }},
		{Name: "counts-from-zero", Wrong: "counts the first delivery 0", Cases: []string{"settle/requeue"},
			tell: func(c *Conduct) { c.Attempt = func(n uint32) uint32 { return n - 1 } }},
		{Name: "counts-from-two", Wrong: "counts the first delivery 2", Cases: []string{"settle/requeue", "unsettled/count-after-restart"},
			tell: func(c *Conduct) { c.Attempt = func(n uint32) uint32 { return n + 1 } }},
		{Name: "reorders", Wrong: "delivers two messages in the wrong order now and then", Cases: []string{"settle/order"},
			tell: func(c *Conduct) { c.Swaps = true }},
		{Name: "new-identity", Wrong: "gives each delivery of a message another identity", Cases: []string{"settle/identity"},
			tell: func(c *Conduct) {
				c.Deliver = func(d *pb.Delivery) { d.Identity = append([]byte{byte(d.GetAttempt())}, d.GetIdentity()...) }
			}},
		{Name: "wrong-profile", Wrong: "names a profile that there is not", Cases: []string{"settle/ack"},
			tell: func(c *Conduct) { c.Deliver = func(d *pb.Delivery) { d.Profile = 7 } }},
		{Name: "renumbers-on-restart", Wrong: "counts from 1 again behind a restart", Cases: []string{"unsettled/count-after-restart"},
			tell: func(c *Conduct) { c.Recounts = true }},
		{Name: "redelivers-acked", Wrong: "delivers again behind a restart what was settled", Cases: []string{"unsettled/settled-stay-gone"},
			tell: func(c *Conduct) { c.ForgetsAcks = true }},
		{Name: "loses-unsettled", Wrong: "loses what was unsettled when it ended", Cases: []string{"unsettled/after-kill", "unsettled/after-cancel"},
			tell: func(c *Conduct) { c.LosesUnsettled = true }},
	}
}

// effect makes a lie of what is carried out in place of one kind of verdict.
func effect(of, instead pb.VerdictKind) func(c *Conduct) {
	return func(c *Conduct) {
		c.Effect = func(k pb.VerdictKind) pb.VerdictKind {
			if k == of {
				return instead
			}
			return k
		}
	}
}

func settleLies() []Lie {
	const (
		ack     = pb.VerdictKind_VERDICT_KIND_ACK
		requeue = pb.VerdictKind_VERDICT_KIND_REQUEUE
		reject  = pb.VerdictKind_VERDICT_KIND_REJECT
		release = pb.VerdictKind_VERDICT_KIND_RELEASE

		done  = pb.SettleStatus_SETTLE_STATUS_DONE
		stale = pb.SettleStatus_SETTLE_STATUS_STALE
	)
	return []Lie{
		{Name: "acks-twice", Wrong: "answers DONE to the second ack of a delivery", Cases: []string{"settle/twice-stale"},
			tell: func(c *Conduct) {
				c.Late = func(k pb.VerdictKind) pb.SettleStatus {
					if k == ack {
						return done
					}
					return stale
				}
			}},
		{Name: "acks-next", Wrong: "takes with an ack the next unsettled delivery along", Cases: []string{"settle/ack"},
			tell: func(c *Conduct) { c.TakesNext = true }},
		{Name: "claims-done", Wrong: "answers DONE to what it cannot do", Cases: []string{"honesty/extend", "honesty/unknown-verdict"},
			tell: func(c *Conduct) {
				c.Status = func(_ *pb.VerdictRun, s pb.SettleStatus) pb.SettleStatus {
					if s == stale {
						return s
					}
					return done
				}
			}},
		{Name: "swallows-verdict", Wrong: "does not answer what it cannot do", Cases: []string{"honesty/extend", "honesty/unknown-verdict"},
			tell: func(c *Conduct) {
				c.Status = func(_ *pb.VerdictRun, s pb.SettleStatus) pb.SettleStatus {
					if s == pb.SettleStatus_SETTLE_STATUS_UNSUPPORTED {
						return pb.SettleStatus_SETTLE_STATUS_UNSPECIFIED
					}
					return s
				}
			}},
		{Name: "unknown-done", Wrong: "answers DONE to the reject of what it never sent", Cases: []string{"settle/unknown-stale"},
			tell: func(c *Conduct) {
				c.Status = func(r *pb.VerdictRun, s pb.SettleStatus) pb.SettleStatus {
					if s == stale && r.GetKind() == reject {
						return done
					}
					return s
				}
			}},
		{Name: "acks-in-order", Wrong: "forgets acks that come before those of older deliveries", Cases: []string{"settle/random-order"},
			tell: func(c *Conduct) { c.InOrder = true }},
		{Name: "unasked-done", Wrong: "answers DONE where nobody asked", Cases: []string{"settle/results-unasked"},
			tell: func(c *Conduct) { c.Unasked = true }},
		{Name: "silent-done", Wrong: "answers no DONE where a result is wanted", Cases: []string{"settle/ack"},
			tell: func(c *Conduct) {
				c.Status = func(_ *pb.VerdictRun, s pb.SettleStatus) pb.SettleStatus {
					if s == done {
						return pb.SettleStatus_SETTLE_STATUS_UNSPECIFIED
					}
					return s
				}
			}},
		{Name: "reverses-results", Wrong: "answers verdicts in reverse order", Cases: []string{"settle/results-in-order"},
			tell: func(c *Conduct) { c.Reversed = true }},
		{Name: "blocks-settle", Wrong: "carries out no verdict while it waits for messages", Cases: []string{"settle/while-idle"},
			tell: func(c *Conduct) { c.Waits = true }},
		{Name: "release-keeps-credit", Wrong: "returns no credit for RELEASE", Cases: []string{"credit/release"},
			tell: func(c *Conduct) { c.KeepsCredit = true }},
		{Name: "release-acks", Wrong: "settles the message of a RELEASE", Cases: []string{"settle/release"}, tell: effect(release, ack)},
		{Name: "release-requeues", Wrong: "hands the message of a RELEASE back at once", Cases: []string{"settle/release"}, tell: effect(release, requeue)},
		{Name: "reject-returns", Wrong: "hands a rejected message back", Cases: []string{"settle/reject"}, tell: effect(reject, requeue)},
		{Name: "ack-returns", Wrong: "hands an acked message back", Cases: []string{"settle/ack"}, tell: effect(ack, requeue)},
		{Name: "requeue-lost", Wrong: "loses a message that is handed back", Cases: []string{"settle/requeue"}, tell: effect(requeue, ack)},
		{Name: "requeue-early", Wrong: "ignores the delay of REQUEUE", Cases: []string{"settle/requeue-delayed"},
			tell: func(c *Conduct) { c.NoDelay = true }},
		{Name: "requeue-late", Wrong: "takes the delay of REQUEUE for a larger unit", Cases: []string{"settle/requeue-delayed"},
			tell: func(c *Conduct) { c.Stretch = 1000 }},
		{Name: "settles-former", Wrong: "settles by ids of a stream that was cancelled", Cases: []string{"unsettled/after-cancel"},
			tell: func(c *Conduct) { c.Former = true }},
		{Name: "drops-last-verdicts", Wrong: "carries out no verdict behind Ended and answers DONE", Cases: []string{"stop/verdicts-after"},
			tell: func(c *Conduct) { c.DropsLast = true }},
		{Name: "unsupported-acks", Wrong: "settles the message of a verdict that it answers UNSUPPORTED", Cases: []string{"honesty/forgets"},
			tell: func(c *Conduct) { c.AcksUnknown = true }},
		{Name: "count-not-raised", Wrong: "counts nothing behind a REQUEUE", Cases: []string{"settle/requeue"},
			tell: func(c *Conduct) { c.SameCount = true }},
		{Name: "close-acks", Wrong: "acks what is unsettled at an orderly end", Cases: []string{"stop/close-settles-nothing"},
			tell: func(c *Conduct) { c.AtEnd = ack }},
		{Name: "settles-on-close", Wrong: "requeues with a delay what is unsettled at an orderly end", Cases: []string{"stop/close-settles-nothing"},
			tell: func(c *Conduct) { c.AtEnd = requeue }},
	}
}

func voidLies() []Lie {
	return []Lie{
		{Name: "no-void", Wrong: "does not say that deliveries are void", Cases: []string{"unsettled/disconnect", "unsettled/void"}, Cut: true,
			tell: func(c *Conduct) { c.Void = func(*pb.Void) *pb.Void { return nil } }},
		{Name: "void-loses", Wrong: "says that what is void comes back, and loses it", Cases: []string{"unsettled/disconnect", "unsettled/void"}, Cut: true,
			tell: func(c *Conduct) { c.LosesVoid = true }},
		{Name: "void-gives-up", Wrong: "says that what is void does not come back, and it comes", Cases: []string{"unsettled/disconnect", "unsettled/void"}, Cut: true,
			tell: func(c *Conduct) {
				c.Void = func(v *pb.Void) *pb.Void {
					v.Returns = false
					return v
				}
			}},
		{Name: "void-keeps-credit", Wrong: "returns no credit for what is void", Cases: []string{"unsettled/void"}, Cut: true,
			tell: func(c *Conduct) { c.VoidKeeps = true }},
		{Name: "late-void", Wrong: "says that deliveries are void behind what comes again", Cases: []string{"unsettled/disconnect", "unsettled/void"}, Cut: true,
			tell: func(c *Conduct) { c.VoidsLate = 300 * time.Millisecond }},
	}
}
