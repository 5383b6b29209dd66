# Every port but the app's, its broker's and the resolver's.
open=$($A ports app); [ "$open" = "53 3000 7070 " ] && held "$open" || hole "open: $open"
