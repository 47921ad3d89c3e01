// SPDX-License-Identifier: Apache-2.0

// Package settings holds the settings of the Pulsar transport and the options of
// its subscriptions and messages.
package settings

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

// Settings are the Pulsar transport's settings. URL is required, everything else
// has a default. Where zero is not the default a field is a pointer, so that zero
// can be said: new(false), new("").
type Settings struct {
	// URL is the cluster: pulsar://host:port, or pulsar+ssl://host:port over TLS,
	// with more hosts behind commas. Without a port it is 6650, and 6651 over TLS.
	// What stands before an @ in it is never shown.
	URL URL `json:"url" required:"true" doc:"The cluster, as in pulsar://broker:6650 or pulsar://a:6650,b:6650, or pulsar+ssl://broker:6651 over TLS."`
	// Token is the token that the service introduces itself with (a JWT). TokenFile
	// names a file with it in its place, which is read again at every connection and
	// whenever the broker asks.
	Token     core.Secret `json:"token,omitempty" doc:"The token (JWT) that the broker asks for."`
	TokenFile string      `json:"token_file,omitempty" doc:"A file with the token; it is read again at every connection."`
	// TLSCA is a PEM file with the authorities that are trusted. Default: those of
	// the system. TLSCert and TLSKey are the PEM files of the client's own
	// certificate; without a token it is what the client introduces itself with.
	TLSCA   string `json:"tls_ca,omitempty" doc:"A PEM file with the trusted authorities; without it those of the system."`
	TLSCert string `json:"tls_cert,omitempty" doc:"A PEM file with the client's certificate."`
	TLSKey  string `json:"tls_key,omitempty" doc:"A PEM file with the key of the client's certificate."`
	// TLSVerifyHostname checks that the broker's certificate is for the host that
	// is dialed. Default true.
	TLSVerifyHostname *bool `json:"tls_verify_hostname,omitempty" default:"true" doc:"The broker's certificate must be for the host that is dialed."`
	// DefaultSubscription is the name of subscriptions that have none of their own.
	// Without it each must have one: the name decides who shares the messages.
	DefaultSubscription string `json:"default_subscription,omitempty" min:"1" doc:"The subscription's name where the option subscription is not given."`
	// ConnectTimeout bounds the first connection of each start, all tries together.
	// Default 60 s.
	ConnectTimeout core.Duration `json:"connect_timeout,omitempty" default:"60s" min:"100ms" max:"1h" doc:"How long the first connection may take, all tries together."`
	// OperationTimeout bounds one try to look something up, to subscribe or to make
	// a producer. Default 30 s.
	OperationTimeout core.Duration `json:"operation_timeout,omitempty" default:"30s" min:"100ms" max:"10m" doc:"How long one try to subscribe, or to look something up, may take."`
	// OperationRetries is how often subscribing is tried, the first time included.
	// Default: until the start is cancelled.
	OperationRetries *int `json:"operation_retries,omitempty" min:"1" doc:"How often subscribing is tried, the first time included; without it until the start is cancelled."`
	// OperationRetryDelay is the time between two tries. Default 5 s.
	OperationRetryDelay core.Duration `json:"operation_retry_delay,omitempty" default:"5s" min:"10ms" max:"10m" doc:"The time between two tries to subscribe."`
	// MaxMessageSize is the most bytes of one published message. The broker's own
	// limit counts where it is lower. Default 5 MiB.
	MaxMessageSize int64 `json:"max_message_size,omitempty" default:"5242880" min:"1024" max:"67108864" doc:"The most bytes of one published message; a lower limit of the broker counts."`
	// PublishTimeout bounds a publish up to the broker's receipt. Default 30 s.
	PublishTimeout core.Duration `json:"publish_timeout,omitempty" default:"30s" min:"100ms" max:"10m" doc:"How long a publish may wait for the broker's receipt."`
	// PublishWindow is how many messages of one topic, or of one of its partitions, may
	// wait for the broker's receipt. Default 1024.
	PublishWindow int `json:"publish_window,omitempty" default:"1024" min:"1" max:"65536" doc:"The most messages of one topic, or of one of its partitions, that wait for the broker's receipt."`
	// MaxProducers is how many topics are kept open for publishing. The one that was
	// idle longest is closed for another one. Default 256.
	MaxProducers int `json:"max_producers,omitempty" default:"256" min:"1" max:"65536" doc:"The most topics that are kept open for publishing."`
	// ProducerName is the name of the producers, one of a topic. Together with
	// PublishOptions.SequenceID it lets a broker with deduplication drop what it has
	// already; no two processes may have the same. Default: the broker gives one.
	ProducerName string `json:"producer_name,omitempty" min:"1" max:"200" doc:"The producers' name, for deduplication; no two processes may have the same."`
	// Compression is what batches and messages are compressed with:
	// CompressionNone (the default), CompressionLZ4, CompressionZLib or
	// CompressionZSTD.
	Compression string `json:"compression,omitempty" default:"none" enum:"none,lz4,zlib,zstd" doc:"What published messages are compressed with."`
	// Batching lets messages of one topic travel in one entry, up to BatchMessages
	// of them, 1000 by default, or those of BatchDelay, 1 ms by default. A requeue
	// brings the whole entry back to a subscription. Default false.
	Batching      bool          `json:"batching,omitempty" doc:"Messages of one topic may travel in one entry."`
	BatchDelay    core.Duration `json:"batch_delay,omitempty" min:"1ms" max:"1m" doc:"How long messages are gathered for one entry, 1ms by default; only with batching."`
	BatchMessages int           `json:"batch_messages,omitempty" min:"1" max:"100000" doc:"The most messages of one entry, 1000 by default; only with batching."`
	// DiscoveryInterval is the time between two looks for new topics of patterns
	// and new partitions. Default 30 s.
	DiscoveryInterval core.Duration `json:"discovery_interval,omitempty" default:"30s" min:"1s" max:"1h" doc:"The time between two looks for new topics and partitions."`
	// DeadLetterSubscription is the durable subscription that dead-letter topics get
	// at start, since a topic without any keeps nothing. It keeps what is dead until
	// somebody reads it. Default "longshore-dead-letters"; "" makes none.
	DeadLetterSubscription *string `json:"dead_letter_subscription,omitempty" default:"longshore-dead-letters" doc:"The subscription that dead-letter topics get at start, so that they keep what is dead; empty: none."`
	// Connections is how many connections there are to each broker. Default 1.
	Connections int `json:"connections,omitempty" default:"1" min:"1" max:"64" doc:"The connections to each broker."`
	// ListenerName is the broker's listener whose addresses are asked for. Default:
	// the broker's own.
	ListenerName string `json:"listener_name,omitempty" min:"1" doc:"The broker's listener whose addresses are asked for."`

	_ struct{} `unsupported:"oauth2" fix:"use token or token_file"`
	_ struct{} `unsupported:"chunking" fix:"keep messages below max_message_size"`
	_ struct{} `unsupported:"encryption" fix:"leave it out: messages travel as they are published"`
	_ struct{} `unsupported:"schema" fix:"leave it out: messages are bytes, and content-type says what they are"`
}

// The values of Compression.
const (
	CompressionNone = "none"
	CompressionLZ4  = "lz4"
	CompressionZLib = "zlib"
	CompressionZSTD = "zstd"
)

// The values of SubscribeOptions.Type.
const (
	TypeShared    = "shared"     // each message goes to one consumer; the broker counts deliveries
	TypeExclusive = "exclusive"  // one consumer alone, in order
	TypeFailover  = "failover"   // one consumer at a time of each partition, in order
	TypeKeyShared = "key_shared" // messages of one key go to one consumer, in order; the broker counts
)

// The values of SubscribeOptions.InitialPosition.
const (
	PositionLatest   = "latest"
	PositionEarliest = "earliest"
)

// SubscribeOptions are the options of one subscription. Its name is a topic, or
// with Pattern a pattern.
type SubscribeOptions struct {
	// Subscription is the name of the subscription: what is read under the same name
	// is shared, whatever the process. Default: the setting default_subscription.
	Subscription string `json:"subscription,omitempty" min:"1" doc:"The subscription's name, which all that share its messages have; default: the setting default_subscription."`
	// Type is how consumers share the messages: TypeShared (the default),
	// TypeExclusive, TypeFailover or TypeKeyShared.
	Type string `json:"type,omitempty" default:"shared" enum:"shared,exclusive,failover,key_shared" doc:"How consumers share the messages."`
	// Pattern says that the name is a pattern: tenant and namespace as they are,
	// then an expression (RE2) that a topic's whole name must match.
	Pattern bool `json:"pattern,omitempty" doc:"The name is a pattern: tenant/namespace/ and an expression for whole topic names."`
	// Topics are read beside the name.
	Topics []string `json:"topics,omitempty" min:"1" max:"1024" doc:"Further topics beside the name."`
	// AckTimeout is how long a delivery may be unsettled before it is asked for
	// again. Default: for ever, as long as the consumer is there.
	AckTimeout core.Duration `json:"ack_timeout,omitempty" min:"100ms" max:"24h" doc:"How long a delivery may be unsettled before it comes again."`
	// InitialPosition is where a subscription begins that the broker does not know:
	// PositionLatest (the default) or PositionEarliest.
	InitialPosition string `json:"initial_position,omitempty" default:"latest" enum:"latest,earliest" doc:"Where a subscription begins that is new to the broker."`
	// ReceiverQueue is how many messages of one partition are read ahead.
	// Default 1000.
	ReceiverQueue int `json:"receiver_queue,omitempty" default:"1000" min:"1" max:"100000" doc:"The most messages of one partition that are read ahead."`
	// ReceiverBytes is how many bytes of messages are read ahead, in all partitions
	// together: where messages are large there are fewer of them, one of each partition
	// at least. Default 32 MiB.
	ReceiverBytes int64 `json:"receiver_bytes,omitempty" default:"33554432" min:"65536" max:"1073741824" doc:"The most bytes that are read ahead, in all partitions together."`
	// ConsumerName is the name of the consumer at the broker. With TypeFailover the
	// broker goes by it. Default: a unique one.
	ConsumerName string `json:"consumer_name,omitempty" min:"1" doc:"The consumer's name at the broker; default: a unique one."`

	_ struct{} `unsupported:"read_compacted" fix:"leave it out: a compacted topic is read whole"`
	_ struct{} `unsupported:"chunking" fix:"leave it out: publish messages below max_message_size"`
	_ struct{} `unsupported:"encryption" fix:"leave it out: messages are delivered as they were published"`
	_ struct{} `unsupported:"schema" fix:"leave it out: messages are bytes, and content-type says what they are"`
}

// PublishOptions are the options of one message.
type PublishOptions struct {
	// Key decides the partition, and the consumer of a TypeKeyShared subscription.
	// Default: the header partition-key.
	Key string `json:"key,omitempty" doc:"The message key, in place of the header partition-key."`
	// OrderingKey is what a TypeKeyShared subscription goes by in place of the key.
	OrderingKey string `json:"ordering_key,omitempty" doc:"What key_shared subscriptions go by in place of the key."`
	// EventTime is when what the message tells has happened.
	EventTime time.Time `json:"event_time,omitzero" doc:"When it happened, as in 2026-01-02T15:04:05Z."`
	// SequenceID numbers the messages of ProducerName in one topic, ever higher: a
	// broker with deduplication drops what is not higher than the last one.
	SequenceID *int64 `json:"sequence_id,omitempty" min:"0" doc:"The number of the message among those of producer_name, ever higher."`
	// DeliverAfter has the broker keep the message for that time. Subscriptions of
	// the types shared and key_shared wait for it, others do not. Default: not at all.
	DeliverAfter core.Duration `json:"deliver_after,omitempty" default:"0s" min:"0s" doc:"How long the broker keeps the message from shared and key_shared subscriptions."`

	_ struct{} `unsupported:"chunking" fix:"keep messages below max_message_size"`
}
