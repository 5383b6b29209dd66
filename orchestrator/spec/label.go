package spec

import (
	"regexp"
	"strings"
)

// part is what a labelled line says of a contract: "Input: …", "Then …".
type part int

const (
	given   part = iota + 1 // what holds before
	doing                   // the action
	success                 // its result
	failure                 // another result, when it goes wrong
	and                     // goes on with the part before it
)

// label is a line's label with what follows it.
type label struct {
	part
	word string // in lower case
	rest string
}

// The words that people put before the parts of a contract, a colon after them.
var labelWords = words(map[part]string{
	given: "given,precondition,preconditions,prerequisite,prerequisites,setup,before,state",
	doing: "input,inputs,request,action,when,call,do,send,stimulus,command,trigger,run,step,steps,endpoint,method,path,url,route," +
		"body,payload,header,headers,query,params,parameters,arguments",
	success: "success,on success,if successful,expected,expect,expects,expected result,expected results,expected output,expected response," +
		"expected behavior,expected behaviour,result,results,then,output,outputs,response,returns,outcome,answer,status,status code,ok,happy path",
	failure: "fail,fails,failure,failures,on failure,on fail,if it fails,error,errors,on error,otherwise,else,invalid,error case,failure case,sad path",
	and:     "and,but",
})

func words(lists map[part]string) map[string]part {
	all := map[string]part{}
	for p, list := range lists {
		for word := range strings.SplitSeq(list, ",") {
			all[word] = p
		}
	}
	return all
}

var (
	colonLabel = regexp.MustCompile(`^([*_]{0,3})([A-Za-z]+(?: [A-Za-z]+){0,2})([*_]{0,3})[ \t]*[:：]([*_]{0,3})(?:[ \t]+(.*)|$)`)
	boldLabel  = regexp.MustCompile(`^(?:\*\*|__)([A-Za-z]+(?: [A-Za-z]+){0,2})(?:\*\*|__)$`)
	storyLabel = regexp.MustCompile(`^[*_]{0,3}(Given|When|Then|And|But|GIVEN|WHEN|THEN|AND|BUT)[*_]{0,3}[ \t]+(.+)$`)
)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// labelOf reads the label of a line that was trimmed. "Given", "When" and their
// kin need no colon when they begin with a capital.
func labelOf(text string) (label, bool) {
	begin := strings.TrimLeft(text, "*_")
	if begin == "" || !strings.ContainsAny(begin[:1], letters) {
		return label{}, false
	}
	if strings.ContainsAny(begin[:1], "GWTAB") {
		if m := storyLabel.FindStringSubmatch(text); m != nil {
			word := strings.ToLower(m[1])
			return label{labelWords[word], word, strings.TrimSpace(m[2])}, true
		}
	}
	word, rest := "", ""
	if strings.ContainsAny(text, ":：") {
		if m := colonLabel.FindStringSubmatch(text); m != nil {
			word, rest = m[2], m[5]
			if shut := m[3] + m[4]; m[1] != "" && shut == "" {
				rest = strings.TrimSuffix(rest, m[1]) // the emphasis is around the whole line
			}
		}
	}
	if m := boldLabel.FindStringSubmatch(text); word == "" && m != nil {
		word = m[1]
	}
	word = strings.ToLower(word)
	p, known := labelWords[word]
	return label{p, word, strings.TrimSpace(rest)}, known
}
