// SPDX-License-Identifier: Apache-2.0

// Package host is the messaging runtime that a service embeds. It starts each
// transport as a plugin process, takes messages off its subscriptions, runs the
// service's handlers, and settles every delivery by the declared policy:
// natively where the transport can, by copies where it cannot.
//
//	h := host.New()
//	in := h.Endpoint("in", host.Plugin{Name: "mqtt"}, map[string]any{"address": "localhost:1883"})
//	orders := in.Subscription("orders")
//	host.Handle(orders, func(ctx context.Context, m *host.Message[Order]) error {
//		return ship(ctx, m.Value)
//	}, host.MaxAttempts(3), host.DeadLetterTo(in.To("orders/dead")))
//	err := h.Run(ctx)
//
// # Lifecycle
//
//  1. Registration: [Host.Endpoint], [Endpoint.Subscription], [Handle],
//     [HandleReply], [HandleBatch] and [To] declare what there is. Nothing runs
//     and nothing fails; what is wrong is kept for the start.
//  2. Start: [Host.Run] starts and configures all plugins, checks everything,
//     and reports all that is wrong in one [*StartError] before anything is
//     connected. Then it connects, opens the subscriptions, and grants the first
//     credit once every one of them is open.
//  3. Work: handlers run, one delivery at a time and in order for each
//     subscription, unless [Workers] says otherwise. A plugin that crashes is
//     started again and its subscriptions reopen.
//  4. Stop: the end of Run's context stops intake, lets handlers, waiting copies
//     and hooks finish within the drain limit, and ends the plugins. [Host.Abort]
//     does not wait. A host whose sources have all ended or caught up stops by
//     itself, unless [StayUp] is given.
//
// # Where to look
//
//   - What a handler says: nil, an error, [Retry], [RetryAfter], [Snooze], [Drop],
//     [DeadLetter], [Leave].
//   - Policy: [MaxAttempts], [MaxElapsed], [Backoff], [DeadLetterTo], [RetryTo],
//     [OnError], [OnPanic], [OnUndecodable]; for many registrations
//     [WithDefaults] and [Endpoint.Defaults].
//   - Dispatch: [Workers], [ByKey], [Window], [RateLimit], [CircuitBreaker],
//     [Subscription.Pause].
//   - Around handlers: [Middleware], [AfterSettle], [OnFinalFailure], [WithCodec];
//     package middleware.
//   - Publishing: [Publisher.Publish], [Publisher.PublishAsync],
//     [Publisher.PublishWith], [Request], [Forward].
//   - Running: [RunUntilSignal], [Host.Ready], [Host.Health], [WithMeter],
//     [WithTracer]; what will happen, beforehand: [Host.Explain].
//   - Tests of a service: package hosttest.
//
// # Caveats
//
//   - A [Message] and all bytes that it gives are valid until the handler returns;
//     keep a [Message.Clone].
//   - A handler's plain error is a retry. Say [Drop] to refuse a message.
//   - A handler that ignores its context cannot be stopped: at the drain limit it
//     is left behind and listed in the [*AbandonedError].
//   - A copy that waits without a [Journal] is lost when the process is killed.
//     [Host.Explain] says where that can happen.
package host
