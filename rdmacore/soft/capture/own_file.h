#ifndef RDMARUN_SOFT_CAPTURE_OWN_FILE_H
#define RDMARUN_SOFT_CAPTURE_OWN_FILE_H

/*
 * Open a path for writing, and make what is there empty, as open(2) does with O_WRONLY | O_CREAT | O_TRUNC and these further
 * flags.  A new file has mode 0600.  In a folder where others may write, such as /tmp, nobody else decides what is written
 * to: what is there must belong to this user or to root.  The descriptor, or a negative errno:
 *   -ELOOP   a symbolic link of another user, or too many links
 *   -EPERM   a file or a pipe of another user
 *   -EMLINK  a file that has a second name
 *   -EBUSY   others make and remove it again and again
 */
int soft_own_file_open(const char *path, int flags);

#endif
