/* A click on a word or an example, or Enter or Space there, goes to the server with its number. */
const chosen = (event) => {
  const target = event.target.closest("[role=button]");
  const number = target ? target.dataset.word ?? target.dataset.example : undefined;
  if (number !== undefined && element.contains(target)) trigger("click", {number: Number(number)});
};
element.addEventListener("click", chosen);
element.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); chosen(event); }
});
