// SPDX-License-Identifier: Apache-2.0

// Package intake is what one subscription receives: it hands out the messages of a
// feed, carries out the verdicts on them, and knows what becomes of them when the host
// takes too long or a consumer is lost (ADR 0123).
//
// There is a lane for each partition, with a table of all messages of it that are in
// the host's hands, wait to be handed out again, or are settled without an answer of
// the broker. A message goes through it like this:
//
//	feed --admit--> handed --ack------> acking --answer--> over
//	                  |  \--late: held--> (handed)
//	                  |  \--release-----> over, or released until the ack timeout
//	                  |  \--timeout, consumer lost--> void: over
//	                  \--requeue--> nack: over            (Shared, KeyShared)
//	                  \--requeue--> queued --> handed     (Exclusive, Failover)
//
// Acks go by id, to whatever consumer the partition has then: one goroutine for each
// lane sends those that have gathered while the broker answered the ones before, and
// sends them again when they were not taken. So an ack counts even where its delivery
// is void, and what comes again behind it is acked again and not delivered.
//
// A message that is handed out is not handed out beside that, unless it comes from a
// later consumer, which makes the first one void.
//
// Shared and KeyShared bring back single messages, and count. On Exclusive and Failover
// a negative ack would make the broker send everything once more that is not acked; in
// the broker that is a race with what it reads meanwhile, behind which messages are
// sent out of order or not at all. So the intake keeps the messages there that are in
// the host's hands, and hands them out again by itself, from the one that failed on;
// those behind it are void.
//
// # Caveats
//
// The bounds: what is kept to be handed out again is 64 MiB, acks without an answer are
// 65,536; nothing is delivered beyond either. A batch of a producer comes again as a
// whole, once the host has nothing else of it or after a second; which of its messages
// are settled is remembered for 1,024 batches and ten minutes a partition.
package intake
