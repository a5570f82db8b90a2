// Before the first paint: the look that was chosen here; without a choice the system's holds. Not a module, since modules
// run too late for that.
try {
  const look = JSON.parse(localStorage.getItem('tessera/look'));
  if (look === 'light' || look === 'dark') document.documentElement.dataset.look = look;
} catch {
  // The system's look.
}
