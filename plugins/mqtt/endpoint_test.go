// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt"
)

func TestDescribe(t *testing.T) {
	spec := mqtt.New().Describe()
	if spec.Name != "mqtt" || spec.NeverRestart || spec.WantsStdio || !spec.Requests || !spec.LinkStates || spec.Seeks {
		t.Errorf("spec %+v", spec)
	}
	for _, c := range spec.Ceilings {
		if err := c.Valid(); err != nil {
			t.Error(err)
		}
	}
	for schema, names := range map[*pluginapi.Schema]string{
		&spec.Settings: "url client_id username password keep_alive clean_start session_expiry max_packet_size receive_maximum publish_window " +
			"qos0_queue qos0_queue_bytes connect_timeout will tls_ca tls_cert tls_key tls_server_name",
		&spec.Subscription: "qos filter group retain_handling no_local retain_as_published connection",
		&spec.Publish:      "qos retain expiry content_type",
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
	const id = `"client_id":"c",`
	const url = `"url":"mqtt://broker",` + id
	for _, tt := range []struct {
		name, json string
		want       []string // path: what message and fix speak of, by semicolons
	}{
		{"nothing", `{}`, []string{"url: mqtt://; missing", "client_id: missing"}},
		{"no client id", `{"url":"mqtt://broker","client_id":""}`, []string{"client_id: at least 1"}},
		{"no scheme", `{` + id + `"url":"broker:1883"}`, []string{"url: broker:1883; mqtt://"}},
		{"another scheme", `{` + id + `"url":"amqp://broker"}`, []string{"url: amqp; mqtts"}},
		{"tcp", `{` + id + `"url":"tcp://broker:1883"}`, []string{"url: tcp; mqtt"}},
		{"WebSocket", `{` + id + `"url":"wss://broker/mqtt"}`, []string{"url: wss://broker/mqtt; WebSocket; mqtts"}},
		{"no host", `{` + id + `"url":"mqtt://"}`, []string{"url: host is missing; mqtt://host:1883"}},
		{"no host but a port", `{` + id + `"url":"mqtt://:1883"}`, []string{"url: host is missing"}},
		{"a bad port", `{` + id + `"url":"mqtt://broker:http"}`, []string{"url: http; 65535"}},
		{"port 0", `{` + id + `"url":"mqtt://broker:0"}`, []string{"url: no port; 65535"}},
		{"a large port", `{` + id + `"url":"mqtt://broker:65536"}`, []string{"url: 65536; 65535"}},
		{"bare IPv6", `{` + id + `"url":"mqtt://::1"}`, []string{"url: brackets"}},
		{"a path", `{` + id + `"url":"mqtt://broker/orders"}`, []string{"url: mqtt://broker/orders; path"}},
		{"bad escapes", `{` + id + `"url":"mqtt://ann:100%@broker"}`, []string{"url: percent sign; %25"}},
		{"an open slash", `{` + id + `"url":"mqtt://ann:a/b@broker"}`, []string{"url: percent-encoded; %2F"}},
		{"two users", `{` + id + `"url":"mqtt://ann@broker","username":"bob"}`, []string{"username: url"}},
		{"two passwords", `{` + id + `"url":"mqtt://ann:x@broker","password":"y"}`, []string{"password: url"}},
		{"a control character", `{"url":"mqtt://broker","client_id":"a\u0007","username":"b\u0000"}`, []string{"client_id: U+0007", "username: U+0000"}},
		{"a control character in url", `{` + id + `"url":"mqtt://a%07@broker"}`, []string{"url: U+0007"}},
		{"S-MQT-33, negative", `{` + url + `"keep_alive":"-1s"}`, []string{"keep_alive: -1s; 65535"}},
		{"S-MQT-33, half", `{` + url + `"keep_alive":"1500ms"}`, []string{"keep_alive: 1.5s; 65535"}},
		{"S-MQT-33, large", `{` + url + `"keep_alive":"65536s"}`, []string{"keep_alive: 18h12m16s; 65535"}},
		{"a fraction", `{` + url + `"session_expiry":"1.5s"}`, []string{"session_expiry: 1.5s; whole seconds; 4294967294"}},
		{"for ever", `{` + url + `"session_expiry":"4294967295s"}`, []string{"session_expiry: 4294967294"}},
		{"limits", `{` + url + `"max_packet_size":100,"receive_maximum":0,"publish_window":65536,"qos0_queue":0,"connect_timeout":"1ms"}`,
			[]string{"max_packet_size: at least 1024", "receive_maximum: at least 1", "publish_window: at most 65279", "qos0_queue: at least 1", "connect_timeout: at least 100ms"}},
		{"TLS without TLS", `{` + url + `"tls_ca":"a","tls_cert":"b","tls_key":"c","tls_server_name":"d"}`,
			[]string{"tls_ca: mqtts", "tls_cert: mqtts", "tls_key: mqtts", "tls_server_name: mqtts"}},
		{"half a certificate", `{` + id + `"url":"mqtts://broker","tls_cert":"b"}`, []string{"tls_key: tls_cert"}},
		{"the other half", `{` + id + `"url":"mqtts://broker","tls_key":"b"}`, []string{"tls_cert: tls_key"}},
		{"a bad will", `{` + url + `"will":{"topic":"a/+","delay":"1ms","expiry":"1500ms","content_type":"\u0001"}}`,
			[]string{"will.topic: a/+", "will.content_type: U+0001", "will.delay: whole seconds", "will.expiry: whole seconds"}},
		{"a will after the session", `{` + url + `"session_expiry":"1m","will":{"topic":"a","delay":"61s"}}`,
			[]string{"will.delay: is 1m1s; over after 1m0s; raise session_expiry"}},
		{"a large will", `{` + url + `"will":{"topic":"a","payload":"` + strings.Repeat("x", 1<<16) + `"}}`, []string{"will.payload: 65536 bytes; 65535"}},
		{"a will without a topic", `{` + url + `"will":{"qos":3}}`, []string{"will.topic: missing", "will.qos: at most 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := mqtt.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(tt.json))})
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

// No message about settings shows a password.
func TestConfigureHidesPasswords(t *testing.T) {
	for _, s := range []string{
		`"url":"mqtt://ann:hunter2@broker:x"`, `"url":"mqtt://ann:hunter2%@broker"`, `"url":"ann:hunter2@broker"`, `"url":"ws://ann:hunter2@broker"`,
		`"url":"mqtt://ann:hunter2@broker/x"`, `"url":"mqtt://ann:hunter2/3@broker"`, `"url":"mqtt://ann:hunter2@"`,
		`"url":"mqtt://ann:hunter2@broker","username":"bob","tls_ca":"x"`,
	} {
		_, err := mqtt.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(`{"client_id":"c",` + s + `}`))})
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
		`"url":"mqtt://broker"`, `"url":"MQTT://broker:1883/"`, `"url":"mqtts://broker.example"`, `"url":"mqtt://[::1]"`, `"url":"mqtts://[::1]:8884"`,
		`"url":"mqtt://ann@127.0.0.1","keep_alive":"0s"`, `"url":"mqtt://ann:p%40ss%2F@broker","keep_alive":"65535s"`, `"url":"mqtt://broker","password":"x"`,
		`"url":"mqtts://broker","tls_cert":"a.pem","tls_key":"b.pem","tls_ca":"c.pem","tls_server_name":"d"`, // S-MQT-33: files are read when it connects
		`"url":"mqtts://broker","keep_alive":"1s"`,
		`"url":"mqtt://broker","clean_start":false,"session_expiry":"4294967294s","will":{"topic":"gone","qos":0}`,
	} {
		raw := fmt.Sprintf(`{"client_id":"c",%s}`, s)
		if _, err := mqtt.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(raw))}); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
