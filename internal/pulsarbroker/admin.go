// SPDX-License-Identifier: Apache-2.0

package pulsarbroker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// admin does a request of the administration under /admin/v2/: body is sent as
// JSON, and the answer read into out, where they are not nil.
func (s *server) admin(ctx context.Context, method, path string, body, out any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://127.0.0.1:%d/admin/v2/%s", s.web, path), sent)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Authorization", "Bearer "+s.secrets.token(administrator, time.Time{}))
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// Admin does a request of the administration, as "PUT", "namespaces/public/a":
// body is sent as JSON, and the answer read into out, where they are not nil.
func (b *Broker) Admin(method, path string, body, out any) {
	b.tb.Helper()
	if err := b.TryAdmin(method, path, body, out); err != nil {
		b.tb.Fatal(err)
	}
}

// TryAdmin is Admin for a request that may be refused.
func (b *Broker) TryAdmin(method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	return b.s.admin(ctx, method, path, body, out)
}

// path returns a topic as paths of the administration have it.
func path(topic string) string {
	rest := strings.TrimPrefix(topic, "persistent://")
	if !strings.Contains(rest, "/") {
		rest = "public/default/" + rest
	}
	parts := strings.SplitN(rest, "/", 3)
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "persistent/" + strings.Join(parts, "/")
}

// CreateNamespace creates a namespace, as "public/a".
func (b *Broker) CreateNamespace(namespace string) {
	b.tb.Helper()
	b.Admin(http.MethodPut, "namespaces/"+namespace, nil, nil)
}

// CreateTopic creates a topic without partitions.
func (b *Broker) CreateTopic(topic string) {
	b.tb.Helper()
	b.Admin(http.MethodPut, path(topic), nil, nil)
}

// CreatePartitioned creates a topic of n partitions.
func (b *Broker) CreatePartitioned(topic string, n int) {
	b.tb.Helper()
	b.Admin(http.MethodPut, path(topic)+"/partitions", n, nil)
}

// UpdatePartitions gives a topic n partitions, which are more than it has.
func (b *Broker) UpdatePartitions(topic string, n int) {
	b.tb.Helper()
	err := b.TryAdmin(http.MethodPost, path(topic)+"/partitions", n, nil)
	if err != nil && b.Partitions(topic) != n {
		b.tb.Fatal(err)
	}
}

// Partitions is how many partitions a topic has. A broker that is asked for more of them
// may answer with an error although it has made them: where a consumer that has found
// one has made its subscription there first.
func (b *Broker) Partitions(topic string) int {
	b.tb.Helper()
	var meta struct {
		Partitions int `json:"partitions"`
	}
	b.Admin(http.MethodGet, path(topic)+"/partitions", nil, &meta)
	return meta.Partitions
}

// Delete deletes a topic without partitions, whoever uses it.
func (b *Broker) Delete(topic string) {
	b.tb.Helper()
	b.Admin(http.MethodDelete, path(topic)+"?force=true", nil, nil)
}

// DeletePartitioned deletes a topic of partitions, whoever uses it.
func (b *Broker) DeletePartitioned(topic string) {
	b.tb.Helper()
	b.Admin(http.MethodDelete, path(topic)+"/partitions?force=true", nil, nil)
}

// Unload has the broker close a topic, whose clients are sent away and come again.
func (b *Broker) Unload(topic string) {
	b.tb.Helper()
	b.Admin(http.MethodPut, path(topic)+"/unload", nil, nil)
}

// CreateSubscription creates a durable subscription that starts at the earliest
// message.
func (b *Broker) CreateSubscription(topic, subscription string) {
	b.tb.Helper()
	earliest := map[string]any{"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
	b.Admin(http.MethodPut, path(topic)+"/subscription/"+url.PathEscape(subscription), earliest, nil)
}

// Topics returns the topics of a namespace, partitions one by one, in full.
func (b *Broker) Topics(namespace string) []string {
	b.tb.Helper()
	var topics []string
	b.Admin(http.MethodGet, "persistent/"+namespace, nil, &topics)
	return topics
}

// Grant lets a role do actions in a namespace: "produce", "consume".
func (b *Broker) Grant(namespace, role string, actions ...string) {
	b.tb.Helper()
	b.Admin(http.MethodPost, "namespaces/"+namespace+"/permissions/"+role, actions, nil)
}

// GrantTopic lets a role do actions on a topic.
func (b *Broker) GrantTopic(topic, role string, actions ...string) {
	b.tb.Helper()
	b.Admin(http.MethodPost, path(topic)+"/permissions/"+role, actions, nil)
}

// Revoke takes from a role what Grant gave.
func (b *Broker) Revoke(namespace, role string) {
	b.tb.Helper()
	b.Admin(http.MethodDelete, "namespaces/"+namespace+"/permissions/"+role, nil, nil)
}

// Deduplicate has the topics of a namespace drop what a producer sends twice.
func (b *Broker) Deduplicate(namespace string) {
	b.tb.Helper()
	b.Admin(http.MethodPost, "namespaces/"+namespace+"/deduplication", true, nil)
}

// Quota limits what unread messages of a topic of a namespace may take, in bytes,
// and says what happens beyond: "producer_request_hold", "producer_exception" or
// "consumer_backlog_eviction". The broker looks once a second.
func (b *Broker) Quota(namespace string, bytes int64, policy string) {
	b.tb.Helper()
	b.Admin(http.MethodPost, "namespaces/"+namespace+"/backlogQuota", map[string]any{"limitSize": bytes, "policy": policy}, nil)
}
