// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The flags of CONNECT (3.1.2.3).
const (
	connectCleanStart = 1 << 1
	connectWill       = 1 << 2
	connectWillQoS    = 3 // shift
	connectWillRetain = 1 << 5
	connectPassword   = 1 << 6
	connectUsername   = 1 << 7
)

// protocol is the name and version that CONNECT begins with.
const protocol = "\x00\x04MQTT\x05"

// AppendConnect appends a CONNECT. The error names what cannot be written.
//
// The library's own leaves content type and expiry of a will out, and cuts off
// what is too long.
func AppendConnect(dst []byte, c *ConnectParams) ([]byte, error) {
	if err := c.check(); err != nil {
		return dst, err
	}
	body := append([]byte(protocol), c.flags())
	body = binary.BigEndian.AppendUint16(body, c.KeepAlive)
	body = appendBlock(body, c.properties())
	body = AppendString(body, c.ClientID)
	if w := c.Will; w != nil {
		body = appendBlock(body, w.properties())
		body = AppendString(body, w.Topic)
		body = AppendString(body, w.Payload)
	}
	if c.Username != "" {
		body = AppendString(body, c.Username)
	}
	if c.Password != nil {
		body = AppendString(body, c.Password)
	}
	dst = appendVBI(append(dst, TypeConnect<<4), len(body))
	return append(dst, body...), nil
}

func (c *ConnectParams) flags() byte {
	var f byte
	if c.CleanStart {
		f |= connectCleanStart
	}
	if w := c.Will; w != nil {
		f |= connectWill | w.QoS<<connectWillQoS
		if w.Retain {
			f |= connectWillRetain
		}
	}
	if c.Password != nil {
		f |= connectPassword
	}
	if c.Username != "" {
		f |= connectUsername
	}
	return f
}

func (c *ConnectParams) properties() []byte {
	var b []byte
	if c.SessionExpiry != 0 {
		b = binary.BigEndian.AppendUint32(append(b, propSessionExpiry), c.SessionExpiry)
	}
	if c.ReceiveMaximum != 0 {
		b = binary.BigEndian.AppendUint16(append(b, propReceiveMaximum), c.ReceiveMaximum)
	}
	if c.MaxPacket != 0 {
		b = binary.BigEndian.AppendUint32(append(b, propMaximumPacket), c.MaxPacket)
	}
	if c.ResponseInformation {
		b = append(b, propRequestResponse, 1)
	}
	return b
}

func (w *Will) properties() []byte {
	var b []byte
	if w.Delay != 0 {
		b = binary.BigEndian.AppendUint32(append(b, propWillDelay), w.Delay)
	}
	if w.Expiry != 0 {
		b = binary.BigEndian.AppendUint32(append(b, PropExpiry), w.Expiry)
	}
	if w.ContentType != "" {
		b = append(b, PropPayloadFormat, PayloadFormat([]byte(w.ContentType)))
		b = AppendString(append(b, PropContentType), w.ContentType)
	}
	return b
}

func appendBlock(dst, block []byte) []byte {
	return append(appendVBI(dst, len(block)), block...)
}

// check says what of a CONNECT cannot be written.
func (c *ConnectParams) check() error {
	if err := checkString("client identifier", c.ClientID); err != nil {
		return err
	}
	if err := checkString("user name", c.Username); err != nil {
		return err
	}
	if len(c.Password) > MaxString {
		return fmt.Errorf("the password has %d bytes, the limit is %d", len(c.Password), MaxString)
	}
	if c.Will == nil {
		return nil
	}
	return c.Will.check()
}

func (w *Will) check() error {
	if err := checkString("topic of the will", w.Topic); err != nil {
		return err
	}
	if err := checkString("content type of the will", w.ContentType); err != nil {
		return err
	}
	if len(w.Payload) > MaxString {
		return fmt.Errorf("the payload of the will has %d bytes, the limit is %d", len(w.Payload), MaxString)
	}
	if w.QoS > 2 {
		return fmt.Errorf("the will has QoS %d, and the highest is 2", w.QoS)
	}
	return nil
}

// checkString says why a string of ours cannot be written (1.5.4).
func checkString(what, s string) error {
	switch {
	case len(s) > MaxString:
		return fmt.Errorf("the %s has %d bytes, the limit is %d", what, len(s), MaxString)
	case !utf8.ValidString(s):
		return fmt.Errorf("the %s is not UTF-8", what)
	case strings.IndexByte(s, 0) >= 0:
		return fmt.Errorf("the %s has a null character", what)
	}
	return nil
}
