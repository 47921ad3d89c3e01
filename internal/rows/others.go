// SPDX-License-Identifier: Apache-2.0

package rows

const (
	byHost      = "the host finds or does it: "
	byTransport = "the transport finds or does it: "
	inDetail    = "seen on the transport: "
)

// Others returns the rows that no decision and no check of package core is
// about, with what is. The other rows have trials or are findings of
// core.Check.
func Others() map[string]string {
	return map[string]string{
		"S-GEN-63": byHost + "a rule given twice",
		"S-GEN-65": byHost + "what is declared is logged at start",
		"S-GEN-66": byHost + "a rule given twice",
		"S-GEN-67": byHost + "a receive error is no delivery",
		"S-GEN-68": byHost + "the end of a stream is no delivery",
		"S-GEN-75": byHost + "the order of the start",
		"S-ZMQ-10": byTransport + "a dead letter that its destination cannot carry, or that comes back",
		"S-ZMQ-16": byTransport + "a destination that nothing can carry",
		"S-ZMQ-24": byHost + "a dead letter that comes back, from Inspect",
		"S-ZMQ-25": byTransport + "a dead letter that nothing can carry",
		"S-ZMQ-30": byTransport + "a destination that nothing can carry",
		"S-ZMQ-36": byTransport + "two subscriptions on one bound endpoint",
		"S-ZMQ-37": byTransport + "an address",
		"S-ZMQ-38": byTransport + "batches on RPC",
		"S-ZMQ-42": inDetail + "reconnecting",
		"S-FIL-08": byTransport + "a key",
		"S-FIL-11": byTransport + "the end of a replay is no delivery",
		"S-FIL-12": byTransport + "an end mark is no delivery",
		"S-FIL-15": byTransport + "two endpoints on one path",
		"S-FIL-16": byTransport + "a missing file",
		"S-FIL-17": byTransport + "a setting",
		"S-FIL-18": byTransport + "a key",
		"S-FIL-19": byTransport + "a seek",
		"S-FIL-22": inDetail + "a start position",
		"S-FIL-23": byTransport + "a start position",
		"S-FIL-24": byHost + "a dead letter that comes back, from Inspect",
		"S-FIL-28": byHost + "a dead letter that comes back through another registration",
		"S-STD-09": inDetail + "a line that cannot be read",
		"S-STD-10": byTransport + "the end of the input is no delivery",
		"S-STD-11": byTransport + "an empty payload",
		"S-STD-12": inDetail + "a line without a key",
		"S-STD-15": byHost + "a dead letter that comes back, from Inspect",
		"S-MQT-20": byHost + "a dead letter that comes back, from Inspect",
		"S-MQT-21": byTransport + "a wildcard in a topic",
		"S-MQT-22": byTransport + "a share group",
		"S-MQT-27": byTransport + "overlapping filters",
		"S-MQT-28": inDetail + "one filter twice",
		"S-MQT-33": byTransport + "a setting",
		"S-MQT-43": inDetail + "when a publish returns",
		"S-PUL-13": byTransport + "a cap without a dead letter",
		"S-PUL-14": byTransport + "a dead letter without a cap",
		"S-PUL-15": byTransport + "a declaration on a type that does not count",
		"S-PUL-16": byTransport + "a topic",
		"S-PUL-17": byTransport + "a bare topic",
		"S-PUL-20": byHost + "a dead letter that comes back, from Inspect",
		"S-PUL-21": byHost + "a crash makes no plan",
		"S-PUL-28": inDetail + "a second consumer",
		"S-PUL-31": byTransport + "a message too large",
		"S-PUL-32": byTransport + "a header that is no text",
		"S-PUL-39": byTransport + "a header name twice",
	}
}
