#!/bin/sh
# Removes all permissions from its output files, and fails.
chmod 000 /abl/out/*
echo 1..1
echo 'not ok 1 - P1.C1'
