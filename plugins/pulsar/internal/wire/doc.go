// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes the few commands of Pulsar's binary protocol that a
// connection needs which carries no messages: the handshake with its
// authentication, keep-alive, the topics of a namespace, and partition counts. A
// command is a frame of its own: its size, the size of the command, and a
// BaseCommand of PulsarApi.proto; fields that are not needed are passed over.
package wire
