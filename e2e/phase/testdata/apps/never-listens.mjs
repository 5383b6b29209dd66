// Runs and never listens.
setInterval(() => {}, 1000);
