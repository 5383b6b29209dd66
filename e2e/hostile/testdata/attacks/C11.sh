# An absolute link, stored as it is.
ln -s /etc/shadow shadow && held made
