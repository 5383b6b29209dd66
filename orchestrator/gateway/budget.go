package gateway

import (
	"fmt"
	"math"
	"sync"

	"abl/orchestrator/gateway/meter"
)

// budget keeps a call below its bounds: no request begins once what was spent and
// what is under way have reached one.
type budget struct {
	mu       sync.Mutex
	caps     Budget
	spent    int64 // tokens
	underWay int64 // tokens, by estimate
	requests int64
}

// admit reserves an estimate for a request, or says why the request may not begin.
func (b *budget) admit(estimate int64) (why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := b.caps.Requests; most != nil && b.requests >= *most {
		return fmt.Sprintf("the budget of this call is reached: %d of %d requests", b.requests, *most)
	}
	if most := b.caps.Tokens; most != nil && plus(b.spent, b.underWay) >= *most {
		return fmt.Sprintf("the budget of this call is reached: %d tokens are spent and about %d under way, of %d", b.spent, b.underWay, *most)
	}
	b.requests++
	b.underWay = plus(b.underWay, estimate)
	return ""
}

// settle replaces an estimate by what the request is charged and returns what is
// spent in all.
func (b *budget) settle(estimate, charged int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.underWay -= estimate
	b.spent = plus(b.spent, charged)
	return b.spent
}

func (b *budget) set(caps Budget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caps = caps
}

// What a request is thought to cost before its provider has told: a token has
// about four bytes, and an answer some length.
const (
	bytesPerToken = 4
	answerTokens  = 1000
)

func estimate(body int, free bool) int64 {
	if free {
		return 0
	}
	return int64(body)/bytesPerToken + answerTokens
}

// charge is what an answer costs: as told, and where that is not the whole, the
// estimate if it is more. So nobody gets tokens for nothing by leaving early.
func charge(u meter.Usage, estimate int64) int64 {
	tokens, told := u.Tokens()
	if !told {
		tokens = max(tokens, estimate)
	}
	return tokens
}

// plus adds without running over.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
