// SPDX-License-Identifier: Apache-2.0

package packet

import "fmt"

// The reason codes (2.4). Those below CodeError tell of success.
const (
	CodeSuccess                byte = 0x00 // granted QoS 0, normal disconnection
	CodeWithWill               byte = 0x04
	CodeNoSubscribers          byte = 0x10
	CodeNoSubscription         byte = 0x11
	CodeError                  byte = 0x80 // unspecified, and the first that tells of a failure
	CodeMalformed              byte = 0x81
	CodeProtocolError          byte = 0x82
	CodeImplementation         byte = 0x83
	CodeVersion                byte = 0x84
	CodeClientID               byte = 0x85
	CodeCredentials            byte = 0x86
	CodeNotAuthorized          byte = 0x87
	CodeUnavailable            byte = 0x88
	CodeBusy                   byte = 0x89
	CodeBanned                 byte = 0x8A
	CodeShuttingDown           byte = 0x8B
	CodeAuthMethod             byte = 0x8C
	CodeKeepAlive              byte = 0x8D
	CodeTakenOver              byte = 0x8E
	CodeFilterInvalid          byte = 0x8F
	CodeTopicInvalid           byte = 0x90
	CodeIDInUse                byte = 0x91
	CodeIDNotFound             byte = 0x92
	CodeReceiveMaximum         byte = 0x93
	CodeTopicAlias             byte = 0x94
	CodeTooLarge               byte = 0x95
	CodeRateTooHigh            byte = 0x96
	CodeQuota                  byte = 0x97
	CodeAdministrative         byte = 0x98
	CodePayloadFormat          byte = 0x99
	CodeRetainUnsupported      byte = 0x9A
	CodeQoSUnsupported         byte = 0x9B
	CodeUseAnother             byte = 0x9C
	CodeMoved                  byte = 0x9D
	CodeSharedUnsupported      byte = 0x9E
	CodeConnectionRate         byte = 0x9F
	CodeConnectTime            byte = 0xA0
	CodeIdentifiersUnsupported byte = 0xA1
	CodeWildcardsUnsupported   byte = 0xA2
)

// Word is a reason code of a packet type in words, with its number: "not
// authorized (0x87)". A code that the standard does not have is "unknown reason".
func Word(typ, code byte) string {
	return fmt.Sprintf("%s (0x%02X)", word(typ, code), code)
}

func word(typ, code byte) string {
	switch code {
	case CodeSuccess:
		return successWord(typ)
	case 0x01, 0x02:
		return fmt.Sprintf("granted QoS %d", code)
	case CodeWithWill:
		return "disconnected with will message"
	case CodeNoSubscribers:
		return "no matching subscribers"
	case CodeNoSubscription:
		return "no subscription existed"
	case 0x18:
		return "continue authentication"
	case 0x19:
		return "re-authenticate"
	}
	if i := int(code) - int(CodeError); i >= 0 && i < len(failures) {
		return failures[i]
	}
	return "unknown reason"
}

func successWord(typ byte) string {
	switch typ {
	case TypeSuback:
		return "granted QoS 0"
	case TypeDisconnect:
		return "normal disconnection"
	default:
		return "success"
	}
}

// failures are the words of the codes from CodeError on.
var failures = [...]string{
	"unspecified error", "malformed packet", "protocol error", "implementation specific error",
	"unsupported protocol version", "client identifier not valid", "bad user name or password", "not authorized",
	"server unavailable", "server busy", "banned", "server shutting down",
	"bad authentication method", "keep alive timeout", "session taken over", "topic filter invalid",
	"topic name invalid", "packet identifier in use", "packet identifier not found", "receive maximum exceeded",
	"topic alias invalid", "packet too large", "message rate too high", "quota exceeded",
	"administrative action", "payload format invalid", "retain not supported", "QoS not supported",
	"use another server", "server moved", "shared subscriptions not supported", "connection rate exceeded",
	"maximum connect time", "subscription identifiers not supported", "wildcard subscriptions not supported",
}
