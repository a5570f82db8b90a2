// Sets the chosen look before the first paint; without a choice the system's look applies. Not a module, since modules
// run too late.
try {
  const look = JSON.parse(localStorage.getItem('tessera/look'));
  if (look === 'light' || look === 'dark') document.documentElement.dataset.look = look;
} catch {
  // The system's look.
}
