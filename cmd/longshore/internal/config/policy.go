// SPDX-License-Identifier: Apache-2.0

package config

// Policy is what a subscription declares of its deliveries. What it does not
// say is taken from the defaults of its endpoint, then from those of the file,
// field by field.
type Policy struct {
	MaxAttempts int32       `json:"max_attempts" doc:"Deliveries of one message, the first included, until it goes to the dead letter or is given up." min:"1"`
	MaxElapsed  Duration    `json:"max_elapsed" doc:"The time from the first failure of a message on after which a further one is its last, as with max_attempts." min:"1ms"`
	DeadLetter  *DeadLetter `json:"dead_letter" doc:"Where messages go that are given up."`
	Backoff     *Backoff    `json:"backoff" doc:"Wait before each further attempt."`
	Floor       *Duration   `json:"floor" doc:"The longest wait that grows before a message which nothing caps is delivered again; 0s: none." min:"0s"`
	Snooze      *Snooze     `json:"snooze" doc:"How a command that exits with 69 is run again later without counting an attempt."`

	Workers        int32           `json:"workers" doc:"Messages that are handled at a time; 1 and in order unless said otherwise." min:"1" max:"10000" without:"one"`
	ByKey          string          `json:"by_key" doc:"The header whose value is a message's key, such as partition-key: several workers handle the messages of one key one after the other." like:"^[!-~]+$" as:"the name of a header"`
	Window         *Window         `json:"window" doc:"What may be unsettled at a time."`
	RateLimit      *RateLimit      `json:"rate_limit" doc:"How many messages are begun in a second."`
	CircuitBreaker *CircuitBreaker `json:"circuit_breaker" doc:"Stop reading for a while when too many messages fail; {} for the usual numbers."`

	OnUndecodable string `json:"on_undecodable" doc:"What is done with a message that the transport could not read." enum:"drop,retry,dead_letter,ack,fail_fast"`
}

// Defaults are what holds where nothing is declared.
type Defaults struct {
	Policy
	Exec *ExecDefaults `json:"exec" doc:"For all commands."`
}

// ExecDefaults are what holds for commands.
type ExecDefaults struct {
	Timeout Duration          `json:"timeout" doc:"When a command and what it started are ended and the message is tried again." min:"1ms"`
	OnExit  map[string]string `json:"on_exit" doc:"What exit statuses mean, in place of what they mean otherwise." like:"^([1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$" as:"an exit status from 1 to 255" enum:"retry,drop,dead_letter,give_up,snooze,fail_fast"`
}

// The kinds of a backoff.
const (
	BackoffConstant    = "constant"
	BackoffLinear      = "linear"
	BackoffExponential = "exponential"
	BackoffDelays      = "delays"
)

// Backoff is the wait before further attempts.
type Backoff struct {
	Kind   string     `json:"kind" doc:"constant: first each time; linear: first longer each time; exponential: doubled each time; delays: as listed. exponential unless said otherwise, or delays where they are listed." enum:"constant,linear,exponential,delays"`
	First  Duration   `json:"first" doc:"The wait before the second attempt." min:"1ms"`
	Max    Duration   `json:"max" doc:"The longest wait; of linear and exponential." min:"1ms"`
	Delays []Duration `json:"delays" doc:"The waits one after the other; the last one is repeated." min:"0s"`
	Jitter *float64   `json:"jitter" doc:"The share of each wait that chance may take away: 0 none, 1 all of it; 1 unless said otherwise." min:"0" max:"1"`
}

// Snooze is how a message is put off.
type Snooze struct {
	Delay Duration `json:"delay" required:"true" doc:"How long it is put off." min:"1ms"`
	Limit int32    `json:"limit" doc:"How often one delivery is put off; after that it is tried again as a counted attempt." min:"1" without:"100"`
	Total Duration `json:"total" doc:"How long one delivery is put off altogether, 1h unless said otherwise." min:"1ms"`
}

// Window bounds what is unsettled.
type Window struct {
	Messages int32 `json:"messages" doc:"Messages." min:"1" without:"the usual number"`
	Bytes    int64 `json:"bytes" doc:"Bytes of payload and headers; exceeded by one message at most." min:"1" without:"8 MiB"`
}

// RateLimit bounds how fast messages are begun.
type RateLimit struct {
	PerSecond float64 `json:"per_second" required:"true" doc:"Messages in a second; 0.1 is one in ten seconds." min:"0.000001"`
	Burst     int32   `json:"burst" doc:"Messages that may be begun at once after a quiet time." min:"1" without:"one"`
}

// CircuitBreaker stops reading while too many messages fail.
type CircuitBreaker struct {
	Share   float64  `json:"share" doc:"The share of failures that opens it, 0.5 unless said otherwise." min:"0.01" max:"1"`
	Of      int32    `json:"of" doc:"The number of messages that the share is taken of." min:"1" max:"10000" without:"20"`
	Pause   Duration `json:"pause" doc:"How long nothing is begun; doubled each time that what is tried then fails as well. 5s unless said otherwise." min:"1ms"`
	Longest Duration `json:"longest" doc:"The longest pause, 1m unless said otherwise." min:"1ms"`
	Probes  int32    `json:"probes" doc:"Messages that must go well one after the other after a pause." min:"1" max:"10000" without:"one"`
}
