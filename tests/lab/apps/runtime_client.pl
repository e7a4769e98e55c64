# SPDX-License-Identifier: BSD-3-Clause
# runtime_client.pl - Perl's sockets, non-blocking under IO::Select, with the task of runtime_client.py for TCP
#
#   runtime_client.pl HOST
use strict;
use warnings;
use Errno qw(EAGAIN ECONNREFUSED);
use IO::Select;
use IO::Socket::IP;

use constant { COUNT => 8, SIZE => 1_000_000 };

my $host = shift;
my $pattern = join('', map { chr } 0 .. 250) x (SIZE / 251 + 2);
my %of;

# IO::Socket::IP tries each address of the name in turn: we call connect() again whenever the socket is writable
for my $number (0 .. COUNT - 1) {
	my $socket = IO::Socket::IP->new(PeerHost => $host, PeerPort => 7, Blocking => 0) or die "connect: $@";
	$of{$socket} = { number => $number, left => substr($pattern, 0, 200_000 + $number), got => '' };
	$of{$socket}{socket} = $socket;
}
my $reading = IO::Select->new;
my $writing = IO::Select->new(map { $_->{socket} } values %of);
my $open = COUNT;
while ($open) {
	my ($readable, $writable) = IO::Select->select($reading, $writing, undef, 20) or die "nothing for 20 s\n";
	for my $socket (@$writable) {
		my $task = $of{$socket};
		if (!$task->{connected}) {
			$writing->remove($socket);
			$task->{connected} = $socket->connect;
			$writing->add($socket); # it may be another one by now
			next if !$task->{connected};
			$reading->add($socket);
		}
		my $sent = syswrite($socket, $task->{left});
		die "write: $!" if !defined $sent && $! != EAGAIN;
		substr($task->{left}, 0, $sent // 0, '');
		next if length $task->{left};
		$writing->remove($socket);
		shutdown($socket, 1);
	}
	for my $socket (@$readable) {
		my $task = $of{$socket};
		my $received = sysread($socket, $task->{got}, 65536, length $task->{got});
		die "read: $!" if !defined $received && $! != EAGAIN;
		next if !defined $received || $received;
		die "connection $task->{number}: other bytes\n" if $task->{got} ne substr($pattern, 0, 200_000 + $task->{number});
		$reading->remove($socket);
		$open--;
	}
}
print COUNT, " done, ", SIZE, " up\n";
IO::Socket::IP->new(PeerHost => $host, PeerPort => 9999) and die "not refused\n";
print "refused\n" if $! == ECONNREFUSED;
