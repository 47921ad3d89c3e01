// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package pluginapi

// A host and its plugins rely on Unix sockets, a pipe as a leash, and
// descriptors that are passed on. Windows has none of these, so building there
// fails, with this name in the message.
const _ = longshore_runs_on_Linux_and_macOS_only_see_docs_adr_0040
