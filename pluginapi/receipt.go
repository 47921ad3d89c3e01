// SPDX-License-Identifier: Apache-2.0

package pluginapi

// Confirmed answers a message that has come as far as the destination's Confirms
// says.
func Confirmed() Receipt { return Receipt{Status: ReceiptConfirmed} }

// Refused answers a message that was not sent and says why. With Transient set
// the host tries again.
func Refused(why *Fault) Receipt { return Receipt{Status: ReceiptRefused, Fault: why} }

// Unknown answers a message of which nobody can tell whether it was sent. The
// host may send it again.
func Unknown(why *Fault) Receipt { return Receipt{Status: ReceiptUnknown, Fault: why} }
