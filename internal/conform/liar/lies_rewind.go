// SPDX-License-Identifier: Apache-2.0

package liar

func rewindLies() []Lie {
	lies := []Lie{
		{Name: "rewinds-nothing", Wrong: "says that a requeue takes the order back, and leaves all else where it is",
			tell: func(c *Conduct) { c.NoRewind = true }},
		{Name: "rewinds-too-far", Wrong: "makes void what was delivered before what is handed back",
			tell: func(c *Conduct) { c.RewindsAll = true }},
		{Name: "rewinds-acked", Wrong: "loses what a requeue makes void",
			tell: func(c *Conduct) { c.LosesVoid = true }},
		{Name: "rewinds-disordered", Wrong: "delivers in another order what comes again behind a requeue",
			tell: func(c *Conduct) { c.Swaps = true }},
	}
	for i := range lies {
		lies[i].Rewinds, lies[i].Cases = true, []string{"settle/rewind"}
	}
	return lies
}
