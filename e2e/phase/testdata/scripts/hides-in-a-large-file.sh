# Writes VALUE, which the test replaces by a secret, into the middle of a file of 3 MB.
yes | head -c 1500000 >conf/big.txt
echo VALUE >>conf/big.txt
yes | head -c 1500000 >>conf/big.txt
