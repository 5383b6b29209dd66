package config

import "reflect"

var kinds = map[reflect.Type]string{
	reflect.TypeFor[Duration](): "a time",
	reflect.TypeFor[Size]():     "a size",
	reflect.TypeFor[TestTime](): "`3x`, a time or `0`",
	reflect.TypeFor[int]():      "a whole number",
	reflect.TypeFor[int64]():    "a whole number",
	reflect.TypeFor[float64]():  "a number",
	reflect.TypeFor[bool]():     "`true` or `false`",
}

// host is the shape of an entry of network.allow that is more than a text.
func host() object {
	return object{"type": "object", "additionalProperties": false, "required": []string{"host"}, "properties": object{
		"host":    object{"type": "string", "description": "A host with a port or without."},
		"private": object{"type": "boolean", "description": "Its addresses may be private ones."},
	}}
}
