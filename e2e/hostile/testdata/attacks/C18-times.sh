# Times out of range.
echo x > old && touch -d '1901-01-01' old; echo x > new && touch -d '2200-01-01' new; echo x > zero-time && touch -d @0 zero-time; held made
