module tessera

go 1.18
