// Ends before it listens.
console.error('SOURCE-AND-STACK');
process.exit(7);
