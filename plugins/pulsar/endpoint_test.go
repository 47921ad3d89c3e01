// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar"
)

func TestDescribe(t *testing.T) {
	spec := pulsar.New().Describe()
	if spec.Name != "pulsar" || spec.NeverRestart || spec.WantsStdio || spec.Requests || !spec.LinkStates || !spec.Seeks {
		t.Errorf("spec %+v", spec)
	}
	for _, c := range spec.Ceilings {
		if err := c.Valid(); err != nil {
			t.Error(err)
		}
	}
	for schema, names := range map[*pluginapi.Schema]string{
		&spec.Settings: "url token token_file tls_ca tls_cert tls_key tls_verify_hostname default_subscription connect_timeout operation_timeout " +
			"operation_retries operation_retry_delay max_message_size publish_timeout publish_window max_producers producer_name compression " +
			"batching batch_delay batch_messages discovery_interval dead_letter_subscription connections listener_name",
		&spec.Subscription: "subscription type pattern topics ack_timeout initial_position receiver_queue receiver_bytes consumer_name",
		&spec.Publish:      "key ordering_key event_time sequence_id deliver_after",
	} {
		for name := range strings.FieldsSeq(names) {
			if !strings.Contains(string(schema.JSON()), `"`+name+`":`) {
				t.Errorf("the schema has no %s", name)
			}
		}
	}
}

// All that is wrong with settings is said at once, by field, before any I/O.
func TestConfigureRefuses(t *testing.T) {
	const url = `"url":"pulsar://broker"`
	for _, tt := range []struct {
		name, json string
		want       []string // path: what message and fix speak of, by semicolons
	}{
		{"nothing", `{}`, []string{"url: pulsar://; missing"}},
		{"no scheme", `{"url":"broker:6650"}`, []string{"url: broker:6650; pulsar://"}},
		{"another scheme", `{"url":"amqp://broker"}`, []string{"url: amqp; pulsar+ssl"}},
		{"the administration", `{"url":"http://broker:8080"}`, []string{"url: http; binary protocol; pulsar://"}},
		{"no host", `{"url":"pulsar://"}`, []string{"url: host is missing; pulsar://host:6650"}},
		{"no second host", `{"url":"pulsar://a,,b"}`, []string{"url: host is missing"}},
		{"a bad port", `{"url":"pulsar://broker:web"}`, []string{"url: web; 65535"}},
		{"a bad second port", `{"url":"pulsar://a:6650,b:0"}`, []string{"url: 0; 65535"}},
		{"bare IPv6", `{"url":"pulsar://::1"}`, []string{"url: brackets"}},
		{"a path", `{"url":"pulsar://broker/public"}`, []string{"url: path; leave it out"}},
		{"a user", `{"url":"pulsar://ann:x@broker"}`, []string{"url: user; token"}},
		{"two tokens", `{` + url + `,"token":"x","token_file":"y"}`, []string{"token_file: beside token"}},
		{"a token with its line end", `{` + url + `,"token":"x\n"}`, []string{"token: as it was issued"}},
		{"control characters", `{` + url + `,"default_subscription":"\u0007","producer_name":"a\u0000","dead_letter_subscription":"\n","listener_name":"\u0001"}`,
			[]string{"default_subscription: control", "producer_name: control", "dead_letter_subscription: control", "listener_name: control"}},
		{"empty names", `{` + url + `,"default_subscription":"","producer_name":"","listener_name":""}`,
			[]string{"default_subscription: at least 1", "producer_name: at least 1", "listener_name: at least 1"}},
		{"limits", `{` + url + `,"max_message_size":100,"publish_window":0,"publish_timeout":"1ms","max_producers":0,"connections":0,"connect_timeout":"1ms"}`,
			[]string{"connect_timeout: at least 100ms", "max_message_size: at least 1024", "publish_timeout: at least 100ms", "publish_window: at least 1",
				"max_producers: at least 1", "connections: at least 1"}},
		{"operations", `{` + url + `,"operation_retries":0,"operation_timeout":"11m","operation_retry_delay":"0s","discovery_interval":"999ms"}`,
			[]string{"operation_timeout: at most 10m", "operation_retries: at least 1", "operation_retry_delay: at least 10ms", "discovery_interval: at least 1s"}},
		{"a large message", `{` + url + `,"max_message_size":67108865}`, []string{"max_message_size: at most 67108864"}},
		{"compression", `{` + url + `,"compression":"gzip"}`, []string{"compression: gzip; none; lz4; zlib; zstd"}},
		{"batches that are off", `{` + url + `,"batch_delay":"1ms","batch_messages":10}`, []string{"batch_delay: batching: true", "batch_messages: batching: true"}},
		{"TLS without TLS", `{` + url + `,"tls_ca":"a","tls_cert":"b","tls_key":"c","tls_verify_hostname":false}`,
			[]string{"tls_ca: pulsar+ssl", "tls_cert: pulsar+ssl", "tls_key: pulsar+ssl", "tls_verify_hostname: pulsar+ssl"}},
		{"half a certificate", `{"url":"pulsar+ssl://broker","tls_cert":"b"}`, []string{"tls_key: tls_cert"}},
		{"the other half", `{"url":"pulsar+ssl://broker","tls_key":"b"}`, []string{"tls_cert: tls_key"}},
		{"what there is not", `{` + url + `,"oauth2":{"issuer_url":"x"},"chunking":true,"encryption":{},"schema":"avro"}`,
			[]string{"chunking: not supported; max_message_size", "encryption: not supported", "oauth2: not supported; token_file", "schema: not supported; content-type"}},
		{"a misspelling", `{` + url + `,"tokn":"x"}`, []string{"tokn: did you mean token"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := pulsar.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(tt.json))})
			f, ok := errors.AsType[*core.Fault](err)
			if !ok || f.Code != core.FaultInvalid || len(f.Diagnostics) != len(tt.want) {
				t.Fatalf("got %+v", err)
			}
			for i, d := range f.Diagnostics {
				path, words, _ := strings.Cut(tt.want[i], ": ")
				if d.Path != path || d.Message == "" || d.Fix == "" {
					t.Errorf("got %+v, want %s", d, tt.want[i])
				}
				for w := range strings.SplitSeq(words, "; ") {
					if !strings.Contains(d.Message+" "+d.Fix, w) {
						t.Errorf("got %+v, which lacks %q", d, w)
					}
				}
			}
		})
	}
}

// No message about settings shows a secret.
func TestConfigureHidesSecrets(t *testing.T) {
	for _, s := range []string{
		`"url":"pulsar://ann:hunter2@broker"`, `"url":"pulsar://hunter2@broker"`, `"url":"ann:hunter2@broker"`, `"url":"http://hunter2@broker"`,
		`"url":"pulsar://ann:hunter2/3@broker/x"`, `"url":"pulsar://a,ann:hunter2@"`, `"url":"hunter2@pulsar://broker"`,
		`"url":"pulsar://broker","token":"hunter2\n","tls_ca":"x"`, `"url":"pulsar://broker","token":["hunter2"]`,
	} {
		_, err := pulsar.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(`{` + s + `}`))})
		if text := fmt.Sprintf("%+v", err); err == nil || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", s, text)
		}
		if f, ok := errors.AsType[*core.Fault](err); !ok || strings.Contains(fmt.Sprintf("%+v", f.Diagnostics), "hunter2") {
			t.Errorf("%s: %+v", s, f)
		}
	}
}

func TestConfigureTakes(t *testing.T) {
	for _, s := range []string{
		`"url":"pulsar://broker"`, `"url":"PULSAR://broker:6650/"`, `"url":"pulsar+ssl://broker.example"`, `"url":"pulsar://[::1]"`,
		`"url":"pulsar://a:6650,b,[::1]:6651"`, `"url":"pulsar://broker","token":"a.b.c"`, `"url":"pulsar://broker","token_file":"/nowhere/yet"`,
		`"url":"pulsar+ssl://broker","tls_cert":"a.pem","tls_key":"b.pem","tls_ca":"c.pem","tls_verify_hostname":false,"token":"x"`,
		`"url":"pulsar://broker","batching":true,"batch_delay":"5ms","batch_messages":10,"compression":"zstd"`,
		`"url":"pulsar://broker","dead_letter_subscription":"","operation_retries":1,"producer_name":"p","max_message_size":67108864`,
	} {
		if _, err := pulsar.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(`{` + s + `}`))}); err != nil {
			t.Errorf("%s: %+v", s, err)
		}
	}
}
