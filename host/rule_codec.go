// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// DefaultContentType says what is assumed of messages without a content-type
// header; replies of [HandleReply] are written so and say so. The default is
// JSON, of protobuf messages protobuf. It is nothing to handlers of []byte and
// [core.Message].
func DefaultContentType(t string) Rule {
	return Rule{"DefaultContentType", caller(), func(s *ruleSet) *complaint {
		s.contentType = t
		if baseType(t) == "" {
			return &complaint{fmt.Sprintf("%q is no content type", t), "name one, such as application/json, or leave the rule out"}
		}
		return nil
	}}
}

// assumes complains of a DefaultContentType for which there is no codec. ok says
// of a built-in format whether it can be the type's.
func (c *calls) assumes(oks ...func(format) bool) []Finding {
	t := c.rules.contentType
	if t == "" || c.codecs.find(t) != nil {
		return nil
	}
	for _, ok := range oks {
		if !ok(formatOf(t)) {
			return []Finding{{
				Option: "DefaultContentType", Message: fmt.Sprintf("there is no codec for %q and the handler's type", t),
				Fix: "add one by WithCodec, or name another content type", Places: places(c.rules.given["DefaultContentType"]),
			}}
		}
	}
	return nil
}

// assumable reports whether a T can be read and written in a built-in format.
func assumable[T any](f format) bool {
	if isRaw[T]() {
		return true
	}
	var zero T
	_, isProto := any(zero).(proto.Message)
	return f == formatDefault || f == formatJSON || f == formatProtobuf && isProto
}
