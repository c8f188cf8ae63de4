// Tables wider than their place say that they can be moved.
function startScrolls() {
  const boxes = [...document.querySelectorAll(".scroll")];
  const look = (box) => box.classList.toggle("scrolls", box.scrollWidth > box.clientWidth + 1);
  const watch = new ResizeObserver((entries) => entries.forEach(({ target }) => look(target)));
  for (const box of boxes) {
    box.after(make("p", { className: "sideways" }, "More columns: scroll the table sideways →"));
    watch.observe(box);
  }
}
