package publisher

// lettersPause is how long a question for the dead-letter topic waits that had no
// answer.
const lettersPause = askPause

// letters is whether the dead-letter topic is there, which is found out before the
// first Connected: a relay that has nowhere to send its letters does not begin
// (protocol.md section 7).
type letters struct {
	found bool // it is, or there is none to be
	asked bool // a question is under way for it, or is to be put again
}

// lettersFound tells whether the relay may begin, and asks when that is not known.
func (c *core) lettersFound() bool {
	if c.cfg.DeadLetterTopic == "" {
		return true
	}
	if !c.letters.found && !c.letters.asked {
		c.letters.asked = true
		c.askForLetters()
	}
	return c.letters.found
}

func (c *core) askForLetters() {
	if tp := c.topic(c.cfg.DeadLetterTopic); !tp.asked && !c.question(tp) {
		c.wake(lettersPause, lettersDue{})
	}
}

// lettersAnswered takes what came of a question for a topic: nil, it exists.
func (c *core) lettersAnswered(tp *topic, fault *Fault) {
	if !c.letters.asked || tp.name != c.cfg.DeadLetterTopic {
		return
	}
	if fault != nil && fault.Code != CodeUnknownTopic && fault.Class != Rejected {
		c.wake(lettersPause, lettersDue{})
		return
	}
	c.letters = letters{found: true} // or at least asked for: it is told once
	if fault != nil {
		c.do(tell{Unusable{Topic: tp.name, Fault: fault}})
	}
	c.connect()
}

// connect tells that a broker was reached.
func (c *core) connect() {
	if c.reach.connected && c.lettersFound() && !c.reach.announced {
		c.reach.announced = true
		c.do(tell{Connected{}})
	}
}

func (c *core) lettersDue() {
	if c.letters.asked {
		c.askForLetters()
	}
}
