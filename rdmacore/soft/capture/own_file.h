#ifndef RDMARUN_SOFT_CAPTURE_OWN_FILE_H
#define RDMARUN_SOFT_CAPTURE_OWN_FILE_H

/*
 * Open a path for writing and truncate it, like open(2) with O_WRONLY | O_CREAT | O_TRUNC and these further flags. A
 * new file has mode 0600. In a folder that other users may write to, such as /tmp, other users must not choose what
 * is written to. So an existing file must belong to this user or to root. Returns the descriptor, or a negative
 * errno:
 *
 *   -ELOOP   a symbolic link of another user, or too many links
 *   -EPERM   a file or a pipe of another user
 *   -EMLINK  a file that has a second name
 *   -EBUSY   other processes create and remove it again and again
 */
int soft_own_file_open(const char *path, int flags);

#endif
