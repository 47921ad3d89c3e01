// SPDX-License-Identifier: Apache-2.0

package conform

// Case is one promise of the protocol and the trial of it.
type Case struct {
	ID      string // "area/what", for cards and --run
	Claim   string // one sentence: what the plugin has to do
	Section string // of docs/protocol.md, its heading
	// Applies says why the case does not concern such a plugin, "" where it does.
	// nil: it concerns every plugin.
	Applies func(a *About) string
	// Needs says what the subject lacks for the case to run, "" for nothing.
	Needs func(a *About) string
	Alone bool // no other case runs meanwhile, since it measures
	Run   func(t *Trial)
}

// Cases returns all cases in the order of cards.
func Cases() []Case {
	var all []Case
	for _, area := range [][]Case{
		lifecycleCases(), settingsCases(), processCases(), creditCases(), settleCases(), honestyCases(),
		publishCases(), roundTripCases(), unsettledCases(), stopCases(), killCases(), leakCases(),
	} {
		all = append(all, area...)
	}
	return all
}
