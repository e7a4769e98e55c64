ip netns add hx
ip netns exec hx bash -c '
ip link set lo up
nft add table ip t; nft "add chain ip t c { type filter hook input priority mangle; }"; nft add rule ip t c tcp dport 5 queue num 3 bypass; iptables-nft -t mangle -I INPUT -p tcp --dport 5 --syn -j NFQUEUE --queue-num 5 --queue-bypass && nft --debug=netlink list table ip mangle; which iptables-nft iptables iptables-legacy; iptables -V; uname -r
'
ip netns del hx
