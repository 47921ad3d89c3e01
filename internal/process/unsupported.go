// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package process

// A plugin lives on a Unix socket in a private directory, in a process group of
// its own, on a leash that is a pipe, and may be handed the host's standard
// input and output as descriptors. Windows has none of these, so building there
// fails, with this name in the message, instead of leaving processes behind.
const _ = longshore_runs_on_Linux_and_macOS_only_see_docs_adr_0040
