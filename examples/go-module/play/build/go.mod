module tickets

go 1.27

require github.com/google/uuid v1.6.0
