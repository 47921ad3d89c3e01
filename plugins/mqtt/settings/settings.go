// SPDX-License-Identifier: Apache-2.0

// Package settings holds the settings of the MQTT transport and the options of
// its subscriptions and messages.
package settings

import "github.com/longshore-go/longshore/core"

// Settings are the MQTT transport's settings. URL and ClientID are required,
// everything else has a default. Where zero is not the default a field is a
// pointer, so that zero can be said: new(false), new(core.Duration(0)).
type Settings struct {
	// URL is the server: mqtt://host:port, or mqtts://host:port over TLS. Without
	// a port it is 1883, and 8883 over TLS. User and password may stand in it,
	// percent-encoded, as in mqtt://user:password@host; the password is never
	// shown.
	URL URL `json:"url" required:"true" doc:"The server, as in mqtt://broker:1883, or mqtts://broker:8883 over TLS."`
	// ClientID names the session at the server. A second connection under the
	// same one ends the first.
	ClientID string `json:"client_id" required:"true" min:"1" doc:"The name of the session at the server; no two connections may have the same."`
	// Username and Password are what the server asks for, where they do not stand
	// in URL.
	Username string      `json:"username,omitempty" doc:"The user, where it does not stand in url."`
	Password core.Secret `json:"password,omitempty" doc:"The password, where it does not stand in url."`
	// KeepAlive is how long a connection may be silent before it is tried with a
	// ping, in whole seconds from 0, which is never, to 65535. A server may set
	// another time. Default 60 s.
	KeepAlive *core.Duration `json:"keep_alive,omitempty" default:"60s" doc:"How long a connection may be silent before it is tried with a ping; 0: never."`
	// CleanStart begins a new session at the first connection of each start of the
	// service, and forgets what the server has kept. Default true.
	CleanStart *bool `json:"clean_start,omitempty" default:"true" doc:"Begin a new session at each start of the service."`
	// SessionExpiry is how long the server keeps the session without a connection,
	// in whole seconds. Only with CleanStart off and a time here what is unsettled
	// comes again, and messages that arrive between two starts are kept. Default 0:
	// not at all.
	SessionExpiry core.Duration `json:"session_expiry,omitempty" default:"0s" min:"0s" doc:"How long the server keeps the session without a connection."`
	// MaxPacketSize is the most bytes of one packet, in both directions. Default
	// 1 MiB.
	MaxPacketSize int64 `json:"max_packet_size,omitempty" default:"1048576" min:"1024" max:"68157440" doc:"The most bytes of one packet, in both directions."`
	// ReceiveMaximum is how many messages of QoS 1 and 2 of one connection may be
	// unsettled at a time: its subscriptions share them, and one that is left
	// unsettled keeps its place until the connection ends. Default 1000.
	ReceiveMaximum int `json:"receive_maximum,omitempty" default:"1000" min:"1" max:"65535" doc:"The most messages of QoS 1 and 2 of one connection that are unsettled at a time."`
	// PublishWindow is how many published messages of QoS 1 and 2 of one connection
	// may wait for the server's answer, less where the server says so. Default 1024.
	PublishWindow int `json:"publish_window,omitempty" default:"1024" min:"1" max:"65279" doc:"The most published messages of QoS 1 and 2 that wait for the server's answer."`
	// QoS0Queue and QoS0QueueBytes bound the messages of QoS 0 of one connection
	// that wait for their subscriptions. What comes beyond them is dropped, counted
	// and warned about. Defaults 65536 and 64 MiB.
	QoS0Queue      int   `json:"qos0_queue,omitempty" default:"65536" min:"1" max:"16777216" doc:"The most messages of QoS 0 of one connection that wait; what comes beyond them is dropped."`
	QoS0QueueBytes int64 `json:"qos0_queue_bytes,omitempty" default:"67108864" min:"1024" doc:"The most bytes of messages of QoS 0 of one connection that wait."`
	// ConnectTimeout bounds one attempt to connect, up to the server's CONNACK.
	// Default 30 s.
	ConnectTimeout core.Duration `json:"connect_timeout,omitempty" default:"30s" min:"100ms" max:"10m" doc:"How long one attempt to connect may take."`
	// Will is what the server publishes when the connection is lost.
	Will *Will `json:"will,omitempty" doc:"What the server publishes when the connection is lost."`
	// TLSCA is a PEM file with the authorities that are trusted. Default: those of
	// the system.
	TLSCA string `json:"tls_ca,omitempty" doc:"A PEM file with the trusted authorities; without it those of the system."`
	// TLSCert and TLSKey are the PEM files of the client's own certificate.
	TLSCert string `json:"tls_cert,omitempty" doc:"A PEM file with the client's certificate."`
	TLSKey  string `json:"tls_key,omitempty" doc:"A PEM file with the key of the client's certificate."`
	// TLSServerName is the name that the server's certificate must have. Default:
	// the host of URL.
	TLSServerName string `json:"tls_server_name,omitempty" doc:"The name that the server's certificate must have; default the host of url."`
}

// Will is a message that the server publishes in place of a client that is gone
// without taking its leave.
type Will struct {
	Topic   string `json:"topic" required:"true" doc:"The topic it is published to."`
	Payload string `json:"payload,omitempty" doc:"The payload, as text."`
	// QoS is the quality of service. Default 1.
	QoS    *int `json:"qos,omitempty" default:"1" min:"0" max:"2" doc:"The quality of service: 0, 1 or 2."`
	Retain bool `json:"retain,omitempty" doc:"The server keeps it as the topic's last message."`
	// ContentType describes the payload.
	ContentType string `json:"content_type,omitempty" doc:"What the payload is, as in application/json."`
	// Delay is how long the server waits for the client to come back, in whole
	// seconds. It waits no longer than it keeps the session.
	Delay core.Duration `json:"delay,omitempty" default:"0s" min:"0s" doc:"How long the server waits for the client to come back; no longer than session_expiry."`
	// Expiry is how long the message is worth delivering, in whole seconds.
	// Default 0: for ever.
	Expiry core.Duration `json:"expiry,omitempty" default:"0s" min:"0s" doc:"How long the message is worth delivering; 0: for ever."`
}

// The values of RetainHandling.
const (
	RetainHandlingAlways = "always" // at each subscribing
	RetainHandlingNew    = "new"    // where the session does not have the subscription yet
	RetainHandlingNever  = "never"  // not at all
)

// SubscribeOptions are the options of one subscription. Its name is a topic, or
// with Filter a filter.
type SubscribeOptions struct {
	// QoS is the most that messages are delivered with: 0 at most once, 1 at least
	// once, 2 exactly once between the server and this process. A server may grant
	// less. Default 1.
	QoS *int `json:"qos,omitempty" default:"1" min:"0" max:"2" doc:"The highest quality of service of deliveries: 0, 1 or 2."`
	// Filter says that the name is a filter, in which + stands for one level and #
	// for all that follow.
	Filter bool `json:"filter,omitempty" doc:"The name is a filter with the wildcards + and #."`
	// Group is the share group: of the subscriptions with the same group and name,
	// in all processes, each message goes to one.
	Group string `json:"group,omitempty" min:"1" doc:"The share group: each message goes to one of its members."`
	// RetainHandling says when the server sends messages that it has retained:
	// RetainHandlingAlways, RetainHandlingNew (the default) or RetainHandlingNever.
	// It sends none to a group.
	RetainHandling string `json:"retain_handling,omitempty" default:"new" enum:"always,new,never" doc:"When retained messages are sent: always, new (where the session lacks the subscription), or never."`
	// NoLocal leaves out what this connection has published itself.
	NoLocal bool `json:"no_local,omitempty" doc:"Leave out what this connection publishes."`
	// RetainAsPublished leaves the mark of retained messages on those that are
	// delivered as they are published.
	RetainAsPublished bool `json:"retain_as_published,omitempty" doc:"Messages say whether they were published to be retained."`
	// Connection gives the subscription a connection of its own, with a receive
	// maximum of its own and the client id "<client_id>-<connection>". Subscriptions
	// that name the same one share it. Default: the endpoint's.
	Connection string `json:"connection,omitempty" min:"1" max:"64" doc:"The name of a connection of its own; subscriptions with the same name share it."`
}

// PublishOptions are the options of one message.
type PublishOptions struct {
	// QoS is the quality of service. A receipt means that the server has the
	// message with 1 and 2, that the operating system has it with 0. Default 1.
	QoS *int `json:"qos,omitempty" default:"1" min:"0" max:"2" doc:"The quality of service: 0, 1 or 2."`
	// Retain makes the message the last one of its topic, which later subscribers
	// get.
	Retain bool `json:"retain,omitempty" doc:"The server keeps it as the topic's last message."`
	// Expiry is how long the message is worth delivering, in whole seconds.
	// Default 0: for ever.
	Expiry core.Duration `json:"expiry,omitempty" default:"0s" min:"0s" doc:"How long the message is worth delivering; 0: for ever."`
	// ContentType describes the payload, in place of the header content-type.
	ContentType string `json:"content_type,omitempty" doc:"What the payload is, in place of the header content-type."`
}
