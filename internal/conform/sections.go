// SPDX-License-Identifier: Apache-2.0

package conform

// Sections of docs/protocol.md, as cards name them.
const (
	sectionHandshake    = "1. Process, Handshake"
	sectionLeash        = "1. Process, The leash"
	sectionEnvironment  = "1. Process, Environment"
	sectionSignals      = "1. Process, Signals"
	sectionStdio        = "1. Process, Standard input and output of the host"
	sectionLog          = "1. Process, Log"
	sectionCalls        = "2. Calls"
	sectionCapabilities = "3. Capabilities"
	sectionStreams      = "4. Subscriptions"
	sectionCredit       = "4. Subscriptions, Credit"
	sectionDeliveries   = "4. Subscriptions, Deliveries"
	sectionVerdicts     = "4. Subscriptions, Verdicts"
	sectionVoid         = "4. Subscriptions, Void"
	sectionSeek         = "4. Subscriptions, Seek"
	sectionPublishing   = "5. Publishing"
	sectionSupervision  = "6. Supervision"
	sectionLimits       = "7. Limits"
)
