# The other host of the job lab, in a VM of its own.  It is an ssh server for the key of build/lab, until that job ends
# it.
# shellcheck shell=bash
set -u
limit=2000
mkdir -p /run/sshd
install -m 600 build/lab/host build/lab/user.pub /run
cat >/run/sshd.conf <<-END
	ListenAddress 198.18.0.2
	HostKey /run/host
	AuthorizedKeysFile /run/user.pub
	PidFile /run/sshd.pid
	PermitRootLogin yes
	StrictModes no
	UsePAM no
	PasswordAuthentication no
	KbdInteractiveAuthentication no
	SetEnv HOME=/tmp XDG_CACHE_HOME=/tmp/cache
END
timeout "$limit" /usr/sbin/sshd -D -e -f /run/sshd.conf
status=$?
# The job asks it to end; anything else but that is a failure.
[ $status = 0 ] || echo "the ssh server ended with exit status $status"
exit $status
