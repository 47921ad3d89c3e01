// SPDX-License-Identifier: Apache-2.0

package wire

import "strconv"

// ServerError is a code by which a broker refuses a request (enum ServerError of
// PulsarApi.proto).
type ServerError int32

// The codes. A broker may know more.
const (
	UnknownError ServerError = iota
	MetadataError
	PersistenceError
	AuthenticationError
	AuthorizationError
	ConsumerBusy
	ServiceNotReady
	ProducerBlockedQuotaExceededError
	ProducerBlockedQuotaExceededException
	ChecksumError
	UnsupportedVersionError
	TopicNotFound
	SubscriptionNotFound
	ConsumerNotFound
	TooManyRequests
	TopicTerminatedError
	ProducerBusy
	InvalidTopicName
	IncompatibleSchema
	ConsumerAssignError
	TransactionCoordinatorNotFound
	InvalidTxnStatus
	NotAllowedError
	TransactionConflict
	TransactionNotFound
	ProducerFenced
)

// names are the codes as the protocol writes them; never written to.
var names = [...]string{
	"UnknownError", "MetadataError", "PersistenceError", "AuthenticationError", "AuthorizationError", "ConsumerBusy",
	"ServiceNotReady", "ProducerBlockedQuotaExceededError", "ProducerBlockedQuotaExceededException", "ChecksumError",
	"UnsupportedVersionError", "TopicNotFound", "SubscriptionNotFound", "ConsumerNotFound", "TooManyRequests",
	"TopicTerminatedError", "ProducerBusy", "InvalidTopicName", "IncompatibleSchema", "ConsumerAssignError",
	"TransactionCoordinatorNotFound", "InvalidTxnStatus", "NotAllowedError", "TransactionConflict", "TransactionNotFound",
	"ProducerFenced",
}

// String is the code's name, or its number where it has none here.
func (e ServerError) String() string {
	if e >= 0 && int(e) < len(names) {
		return names[e]
	}
	return "ServerError(" + strconv.Itoa(int(e)) + ")"
}
