# An entry in a block that shows the format.
printf 'the format of an entry

```
SPEC: a
INPUT: b
OBSERVED: c
```
end
' > failed_specs.md
