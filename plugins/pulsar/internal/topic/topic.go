// SPDX-License-Identifier: Apache-2.0

// Package topic has the names of Pulsar: topics, their partitions, the patterns that
// subscriptions match them with, and the ids of messages within them.
package topic

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// Max is the most bytes of a topic's name in full. The server has no limit of its
// own, but a name travels with each delivery.
const Max = 1024

// NoPartition is the partition of a name that names none.
const NoPartition = -1

// Where a bare name lies.
const (
	DefaultTenant    = "public"
	DefaultNamespace = "default"
)

const (
	scheme          = "://"
	persistent      = "persistent"
	nonPersistent   = "non-persistent"
	partitionSuffix = "-partition-"
)

// Name is the name of a persistent topic, or of one of its partitions.
type Name struct {
	Tenant    string
	Namespace string
	Local     string
	Partition int // from 0, NoPartition = the topic itself
}

// Parse reads the name of a topic: "orders" (of public/default), "tenant/ns/orders"
// or "persistent://tenant/ns/orders", where "-partition-N" at the end names one
// partition. The parts have letters, digits, '-', '_' and '.' (reference 3.5). The
// fault names the topic and says what to write instead.
func Parse(s string) (Name, error) { return parse(s, plain) }

// ParseListed is Parse for a name that a server has listed: its topic may have other
// characters than Parse takes.
func ParseListed(s string) (Name, error) { return parse(s, listed) }

func parse(s string, check func(string) string) (Name, error) {
	tenant, namespace, local, err := split("topic", s)
	if err != nil {
		return Name{}, err
	}
	n := Name{Tenant: tenant, Namespace: namespace, Local: local, Partition: NoPartition}
	if reason := check(local); reason != "" {
		return Name{}, invalid("topic", s, "its name "+reason, "use letters, digits, '-', '_' and '.'")
	}
	if !strings.Contains(local, partitionSuffix) {
		return n, nil
	}
	// Pulsar's clients read a number behind the last '-' of such a name, whatever it is.
	base, digits, _ := strings.Cut(local, partitionSuffix)
	n.Local = base
	if n.Partition, err = strconv.Atoi(digits); err != nil || base == "" || n.Partition < 0 || strconv.Itoa(n.Partition) != digits {
		return Name{}, invalid("topic", s, "\"-partition-\" belongs before the number of a partition, at the end of a name", "use another name")
	}
	return n, nil
}

// split takes a name apart, or what kind says. Tenant and namespace are checked, what
// is behind them is not.
func split(kind, s string) (tenant, namespace, local string, err error) {
	const forms = `write "name", "tenant/namespace/name" or "persistent://tenant/namespace/name"`
	if len(s) > Max {
		return "", "", "", invalid(kind, s, fmt.Sprintf("it has %d bytes, the limit is %d", len(s), Max), "shorten it")
	}
	if !utf8.ValidString(s) {
		return "", "", "", invalid(kind, s, "it is not UTF-8", forms)
	}
	rest := s
	if domain, behind, ok := strings.Cut(s, scheme); ok {
		switch domain {
		case persistent:
		case nonPersistent:
			return "", "", "", invalid(kind, s, "non-persistent topics keep nothing that could be settled or come again", "name a persistent topic")
		default:
			return "", "", "", invalid(kind, s, fmt.Sprintf("%q is no kind of topic", domain), forms)
		}
		rest = behind
	} else if !strings.Contains(s, "/") {
		rest = DefaultTenant + "/" + DefaultNamespace + "/" + s
	}
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 {
		return "", "", "", invalid(kind, s, "it has no tenant, namespace and name", forms)
	}
	for i, part := range []string{"tenant", "namespace"} {
		if reason := plain(parts[i]); reason != "" {
			return "", "", "", invalid(kind, s, "the "+part+" "+reason, "use letters, digits, '-', '_' and '.'")
		}
	}
	return parts[0], parts[1], parts[2], nil
}

// plain says what a part of a name has that it may not, "" = nothing.
func plain(part string) string {
	if part == "" {
		return "is empty"
	}
	for _, r := range part {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		default:
			return fmt.Sprintf("has the character %q", r)
		}
	}
	return ""
}

// listed is plain for what a server takes.
func listed(part string) string {
	switch {
	case part == "":
		return "is empty"
	case strings.ContainsAny(part, "/\x00"):
		return "has a slash or a null character"
	default:
		return ""
	}
}

// String returns the name in full, "persistent://tenant/namespace/name".
func (n Name) String() string {
	s := persistent + scheme + n.Tenant + "/" + n.Namespace + "/" + n.Local
	if n.Partition >= 0 {
		s += partitionSuffix + strconv.Itoa(n.Partition)
	}
	return s
}

// Base returns the topic that a partition belongs to.
func (n Name) Base() Name { return n.At(NoPartition) }

// At returns the partition of n's topic.
func (n Name) At(partition int) Name {
	n.Partition = max(partition, NoPartition)
	return n
}

// NamespacePath returns "tenant/namespace".
func (n Name) NamespacePath() string { return n.Tenant + "/" + n.Namespace }

// Compare orders names by tenant, namespace, topic and partition.
func (n Name) Compare(m Name) int {
	return cmp.Or(cmp.Compare(n.Tenant, m.Tenant), cmp.Compare(n.Namespace, m.Namespace),
		cmp.Compare(n.Local, m.Local), cmp.Compare(n.Partition, m.Partition))
}

func invalid(kind, s, reason, fix string) *core.Fault {
	f := fault.Refusal(core.FaultInvalid, "the %s %s: %s", kind, fault.Shown(s), reason)
	f.Diagnostics = []core.Diagnostic{{Fix: fix}}
	return f
}
